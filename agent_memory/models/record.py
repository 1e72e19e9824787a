"""What all models of the library have in common.

Modules with models do without ``from __future__ import annotations``: Pydantic would have to
compile every annotation from text, which takes 20 ms of the 200 that a command may take to start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ValidationError


class Record(BaseModel):
    """A Pydantic model that is built when it is first used.

    Building all of them at import took 40 ms. Validation errors do not quote the input: it may hold
    a secret.
    """

    model_config = ConfigDict(defer_build=True, hide_input_in_errors=True)
    is_sparse: ClassVar[bool] = False
    """Whether optional fields that are not set are left out of its JSON."""

    @classmethod
    def defaults(cls) -> Self:
        """Return the model with its defaults: always the same instance, so do not change it.

        It is not validated, which would build the validator: that costs a new process 20 ms. It is
        created only once because Pydantic inspects the signature of each ``default_factory`` every
        time.
        """
        if cls not in _defaults:
            _defaults[cls] = cls.model_construct()
        return cast("Self", _defaults[cls])


class SparseRecord(Record, frozen=True):
    """A model that leaves missing optional fields out of its JSON, as in C."""

    is_sparse: ClassVar[bool] = True

    @model_serializer(mode="wrap")
    def _without_absent(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}


Model = TypeVar("Model", bound=Record)


def validated(
    model: type[Model], values: Mapping[str, object], *, at: Sequence[str | int] = ()
) -> Model:
    """Return the model that ``values`` describe, or raise the library's own ``ValidationError``."""
    try:
        return model.model_validate(values)
    except PydanticValidationError as error:
        raise ValidationError.from_pydantic(error, at=at, fields=model.model_fields) from error


def validate_model(model: type[Model], value: Model | Mapping[str, Any] | None) -> Model:
    """Return the model itself, or the one that a mapping describes; ``None`` means an empty one."""
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
    except RecursionError as error:  # while formatting a value for the error
        raise ValidationError.of(model.__name__, "is nested too deeply", value) from error


_defaults: Final[dict[type[Record], Record]] = {}
