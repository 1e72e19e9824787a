"""Whose memories are meant, and what may be done with them: C's session context (C, 2)."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import InvalidSession
from agent_memory.models.documents.record_rules import CustomMetadata
from agent_memory.models.field_types import AgentId, ScopeId
from agent_memory.models.owner import Owner
from agent_memory.models.record import SparseRecord

_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,100}")
_RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")


def _one_of(pattern: re.Pattern[str], rule: str) -> Callable[[object], str]:
    def clean(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(f"a {type(value).__name__} is not a string: use {rule}")  # noqa: TRY004
        if pattern.fullmatch(value) is None:
            raise ValueError(f"{value!r:.120} is not a valid id: use {rule}")
        return value

    return clean


_clean_name = _one_of(_NAME, "1 to 100 letters (A to Z), digits and '_'")
_clean_run = _one_of(_RUN, "1 to 100 letters (A to Z), digits, '_' and '-'")

SessionName = Annotated[str, BeforeValidator(_clean_name)]
"""The id of a user or an agent (C, 14): 1 to 100 ASCII letters, digits and underscores."""
SessionRun = Annotated[str, BeforeValidator(_clean_run)]
"""The id of a run (C, 14): the same, plus hyphens."""


class SessionType(StrEnum):
    """The scope of a session: all memories of a user, or of one agent or one run of that user."""

    USER = "USER"
    AGENT = "AGENT"
    RUN = "RUN"


class SessionPermissions(SparseRecord, extra="forbid"):
    """What a session may do; everything by default."""

    read: StrictBool = True
    write: StrictBool = True
    delete: StrictBool = True


class SessionContext(SparseRecord, extra="forbid"):
    """Whose memories are meant: a user's, or those of one agent or one run of that user.

    ``session_type`` follows from the ids unless it is given: RUN with a ``run_id``, else AGENT with
    an ``agent_id``, else USER. RUN needs a ``run_id``, AGENT an ``agent_id``. Ids match in full.
    The context is immutable.

    Invalid values raise Pydantic's ``ValidationError``; ``SessionContext.of`` raises
    ``InvalidSession``.
    """

    user_id: SessionName
    agent_id: SessionName | None = None
    run_id: SessionRun | None = None
    session_type: SessionType = SessionType.USER
    permissions: SessionPermissions = Field(default_factory=SessionPermissions)
    metadata: CustomMetadata | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_its_type(cls, values: Any) -> Any:  # noqa: ANN401 - whatever the caller gave
        if not isinstance(values, Mapping) or values.get("session_type") is not None:
            return values
        kinds = (("run_id", SessionType.RUN), ("agent_id", SessionType.AGENT))
        implied = [kind for name, kind in kinds if values.get(name) is not None]
        return {**values, "session_type": (*implied, SessionType.USER)[0]}

    # Not a validator of the whole model: its error would show all of it.
    @field_validator("session_type")
    @classmethod
    def _has_what_it_needs(cls, kind: SessionType, info: ValidationInfo) -> SessionType:
        """Refuse a type without its id; an invalid id has been reported already."""
        needed = {SessionType.RUN: "run_id", SessionType.AGENT: "agent_id"}.get(kind)
        if needed is not None and info.data.get(needed, "") is None:
            raise ValueError(f"a session of the type {kind} needs {needed!r}")
        return kind

    @classmethod
    def of(cls, session: "SessionContext | Mapping[str, Any]") -> "SessionContext":
        """Return the session itself, or the one that a mapping describes.

        Raises an ``InvalidSession`` that names each invalid value and the rule for it.
        """
        if isinstance(session, cls):
            return session
        if not isinstance(session, Mapping):
            kind = type(session).__name__
            message = (
                f"a {kind} is not a session: give a SessionContext or a mapping with a user_id"
            )
            raise InvalidSession.of("session", message, session)
        try:
            return cls.model_validate(dict(session))
        except PydanticValidationError as error:
            raise InvalidSession.from_pydantic(error, fields=cls.model_fields) from error
        except RecursionError as error:  # from nested metadata
            raise InvalidSession.of("session", "is nested too deeply", session) from error


class SessionScope(SessionContext):
    """A session context that allows common ids; ``AgentMemory.session`` creates it.

    C's own model allows only letters, digits and ``_``. Here a user and a run have 1 to 128
    printable characters (a UUID, an e-mail address, ``auth0|5f7c``), and an agent has an agent id.
    """

    user_id: ScopeId
    agent_id: AgentId | None = None
    run_id: ScopeId | None = None

    @property
    def owner(self) -> Owner:
        """Whose memories the session may see: the run's in a session of the type RUN."""
        is_of_run = self.session_type is SessionType.RUN
        return Owner(self.user_id, self.run_id if is_of_run else None)

    @classmethod
    def of(cls, session: SessionContext | Mapping[str, Any]) -> "SessionScope":
        """Return the scope of a session or a mapping. Raises ``InvalidSession``.

        A context is validated again: ``model_copy`` could make one without a user, which would mean
        everybody.
        """
        if isinstance(session, SessionContext):
            session = {
                name: dict(value) if isinstance(value, SessionPermissions) else value
                for name, value in session
            }
        scope = super().of(session)
        assert isinstance(scope, cls)  # noqa: S101 - of a mapping it makes one
        return scope
