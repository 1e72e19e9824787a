"""What all models of the library have in common.

Their modules do without ``from __future__ import annotations``: Pydantic would have to compile
every annotation from its text, which takes 20 ms of the 200 that a command may take to start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ValidationError


class Record(BaseModel):
    """A Pydantic model that is built when it is first used.

    Building all of them at import took 40 ms. The errors of validation do not quote what was given:
    it may hold a secret.
    """

    model_config = ConfigDict(defer_build=True, hide_input_in_errors=True)
    is_sparse: ClassVar[bool] = False
    """Whether optional fields that are not given are left out of its JSON."""

    @classmethod
    def defaults(cls) -> Self:
        """Return the model with nothing but defaults: always the same one, so do not change it.

        It is not validated, which would build the validator: that costs a new process 20 ms. And
        it is made once: Pydantic inspects the signature of each ``default_factory`` every time.
        """
        if cls not in _defaults:
            _defaults[cls] = cls.model_construct()
        return cast("Self", _defaults[cls])


class SparseRecord(Record, frozen=True):
    """A model whose optional fields are left out of its JSON where they are not given, as in C."""

    is_sparse: ClassVar[bool] = True

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}


Model = TypeVar("Model", bound=Record)


def validated(
    model: type[Model], values: Mapping[str, object], *, at: Sequence[str | int] = ()
) -> Model:
    """Return the model that values describe; what is wrong is told in the library's own error."""
    try:
        return model.model_validate(values)
    except PydanticValidationError as error:
        raise ValidationError.from_pydantic(error, at=at) from error


def validate_model(model: type[Model], value: Model | Mapping[str, Any] | None) -> Model:
    """Return the model itself, or the one that a mapping describes; ``None`` is an empty one."""
    if isinstance(value, model):
        return value
    if value is None or value == {}:
        value = {}
        if not any(field.is_required() for field in model.model_fields.values()):
            return model.defaults()
    if not isinstance(value, Mapping):
        message = f"must be a {model.__name__} or a mapping"
        raise ValidationError.of(model.__name__, message, value)
    try:
        return validated(model, dict(value))
    except RecursionError as error:  # a value was to be shown
        raise ValidationError.of(model.__name__, "is nested too deep", value) from error


_defaults: Final[dict[type[Record], Record]] = {}
