"""What embedders are set up with: environment variables, the usual numbers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from agent_memory.errors import ConfigurationError

DEFAULT_MODEL: Final = "text-embedding-3-small"
"""OpenAI's, where none is named."""
KEY_VARIABLE: Final = "OPENAI_API_KEY"
DEFAULT_BATCH_SIZE: Final = 100
"""Texts that an embedder is given at a time, unless it says otherwise."""
MAX_DIMENSIONS: Final = 20_000
PROBE_TEXT: Final = "hello"
"""What is embedded only to see how long the vectors are."""
MODEL_VARIABLE: Final = "AGENT_MEMORY_EMBEDDING_MODEL"
DIMENSIONS_VARIABLE: Final = "AGENT_MEMORY_EMBEDDING_DIMENSIONS"


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """What is set for embedders that are made by their names; ``None`` is not set.

    Each counts in this order: an embedder object is taken as it is; the model in a name
    (``openai:MODEL``); what is set here; the environment variable; of the model only,
    ``file_model``, which `configure` wrote into the agent's file; the default.

    All are the arguments of ``OpenAIEmbedder``. ``model`` is also that of any other embedder whose
    name stands alone, unless it is one of OpenAI's; wordllama has but one. ``file_model`` is
    OpenAI's alone: no file is taken at its word about what to load.
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
        """Return the model to ask OpenAI's client for, ``None`` for the default one."""
        return text_setting(named or self.model, MODEL_VARIABLE, self.file_model or "") or None

    def openai_dimensions(self) -> int | None:
        """Return how long OpenAI's vectors are to be, ``None`` for what the model has."""
        return dimensions_setting(self.dimensions) or None


def text_setting(argument: str | None, variable: str, default: str = "") -> str:
    """Return a text: given, else from the environment, else the default. Blank is not given.

    Raises ``ConfigurationError`` for what is no text; it may hold a secret, so it is not shown.
    """
    if argument is not None and not isinstance(argument, str):
        raise ConfigurationError(
            f"what is given for {variable} is a {type(argument).__name__}: give a text"
        )
    return (argument or "").strip() or os.environ.get(variable, "").strip() or default


def whole_number_setting(
    argument: int | None, name: str, variable: str, *, default: int, lowest: int, highest: int
) -> int:
    """Return a whole number: given, else from the environment, else the default.

    Raises ``ConfigurationError`` that names the argument or the variable.
    """
    number, source = _number_setting(argument, name, variable, default)
    if number != int(number) or not lowest <= number <= highest:
        raise ConfigurationError(
            f"{source} is {number:.15g}: give a whole number from {lowest} to {highest}"
        )
    return int(number)


def dimensions_setting(argument: int | None) -> int:
    """Return how long a service's vectors are to be, found in the same way; 0: not given."""
    return whole_number_setting(
        argument,
        "dimensions",
        DIMENSIONS_VARIABLE,
        default=0,
        lowest=0 if argument is None else 1,
        highest=MAX_DIMENSIONS,
    )


def seconds_setting(argument: float | None, name: str, variable: str, *, default: float) -> float:
    """Return a span in seconds, above 0 and up to a day, found in the same way."""
    number, source = _number_setting(argument, name, variable, default)
    if not 0 < number <= 86_400:
        raise ConfigurationError(f"{source} is {number:g}: give seconds, above 0 and up to 86400")
    return number


def _number_setting(
    argument: float | None, name: str, variable: str, default: float
) -> tuple[float, str]:
    """Return the number and where it came from; it is finite."""
    text = os.environ.get(variable, "").strip()
    value, source = (argument, name) if argument is not None else (text or default, variable)
    try:
        number = float(value)
        int(number)  # refuses infinity and NaN
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{source} is {value!r:.80}: give a number") from error
    return number, source
