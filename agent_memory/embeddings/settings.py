"""The settings of embedders: environment variables and defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from agent_memory.errors import ConfigurationError

DEFAULT_MODEL: Final = "text-embedding-3-small"
"""OpenAI's model, if none is named."""
KEY_VARIABLE: Final = "OPENAI_API_KEY"
DEFAULT_BATCH_SIZE: Final = 100
"""Texts per call of an embedder, unless it has a ``batch_size``."""
MAX_DIMENSIONS: Final = 20_000
PROBE_TEXT: Final = "hello"
"""The text that is embedded only to learn the length of the vectors."""
MODEL_VARIABLE: Final = "AGENT_MEMORY_EMBEDDING_MODEL"
DIMENSIONS_VARIABLE: Final = "AGENT_MEMORY_EMBEDDING_DIMENSIONS"


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Settings for embedders that are created by name; ``None`` means not set.

    The order of precedence, highest first:

    - an embedder object, which is used as it is
    - the model in a name (``openai:MODEL``)
    - what is set here
    - the environment variable
    - for the model only, ``file_model``, which `configure` wrote to the agent's file
    - the default

    All are arguments of ``OpenAIEmbedder``. ``model`` also applies to any other embedder that is
    named without one, unless it is one of OpenAI's models; wordllama has only one model.
    ``file_model`` applies to OpenAI only: a file must not decide what is loaded.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # may hold a password
    model: str | None = None
    dimensions: int | None = None
    batch_size: int | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    file_model: str | None = None

    def openai_model(self, named: str | None = None) -> str | None:
        """Return the model to request through OpenAI's client, or ``None`` for the default."""
        return text_setting(named or self.model, MODEL_VARIABLE, self.file_model or "") or None

    def openai_dimensions(self) -> int | None:
        """Return the length that OpenAI's vectors should have, or ``None`` for the model's own."""
        return dimensions_setting(self.dimensions) or None


def text_setting(argument: str | None, variable: str, default: str = "") -> str:
    """Return the argument, else the environment variable, else the default. Blank is not set.

    Raises ``ConfigurationError`` for an argument that is not a string; it may be a secret, so it is
    not shown.
    """
    if argument is not None and not isinstance(argument, str):
        raise ConfigurationError(f"{variable} is a {type(argument).__name__}: give a string")
    return (argument or "").strip() or os.environ.get(variable, "").strip() or default


def whole_number_setting(
    argument: int | None, name: str, variable: str, *, default: int, lowest: int, highest: int
) -> int:
    """Return an integer: the argument, else the environment variable, else the default.

    Raises a ``ConfigurationError`` that names the argument or the variable.
    """
    number, source = _number_setting(argument, name, variable, default)
    if number != int(number) or not lowest <= number <= highest:
        raise ConfigurationError(
            f"{source} is {number:.15g}: give a whole number from {lowest} to {highest}"
        )
    return int(number)


def dimensions_setting(argument: int | None) -> int:
    """Return the vector length to request from a service, found in the same way; 0 if not set."""
    return whole_number_setting(
        argument,
        "dimensions",
        DIMENSIONS_VARIABLE,
        default=0,
        lowest=0 if argument is None else 1,
        highest=MAX_DIMENSIONS,
    )


def seconds_setting(argument: float | None, name: str, variable: str, *, default: float) -> float:
    """Return a duration in seconds, above 0 and up to a day, found in the same way."""
    number, source = _number_setting(argument, name, variable, default)
    if not 0 < number <= 86_400:
        raise ConfigurationError(f"{source} is {number:g}: give seconds, above 0 and up to 86400")
    return number


def _number_setting(
    argument: float | None, name: str, variable: str, default: float
) -> tuple[float, str]:
    """Return a finite number and the name of its source."""
    text = os.environ.get(variable, "").strip()
    value, source = (argument, name) if argument is not None else (text or default, variable)
    try:
        number = float(value)
        int(number)  # refuses infinity and NaN
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{source} is {value!r:.80}: give a number") from error
    return number, source
