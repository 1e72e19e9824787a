"""The name of the session that stores: given, from the environment, or new."""

from __future__ import annotations

import os

from agent_memory.errors import ValidationError
from agent_memory.models.fields import clean_label, new_session_name
from agent_memory.runtime.paths import SESSION_VARIABLE


def choose_session_name(name: str | None) -> str:
    """Return the session's name: given, else from the environment, else a new one."""
    chosen = name or os.environ.get(SESSION_VARIABLE) or new_session_name()
    if not isinstance(chosen, str):
        raise ValidationError.of("session_id", "must be a text", chosen)
    try:
        return clean_label(chosen)
    except ValueError as error:
        raise ValidationError.of("session_id", str(error), chosen) from error
