"""Asking a language model until its answer can be used, a few times at most."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    ProviderError,
    RateLimitExceeded,
)
from agent_memory.extraction.llm.answers import BadAnswer, Shape, parse
from agent_memory.extraction.llm.prompts import again
from agent_memory.models.protocols import LanguageModel

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Asked(Generic[Shape]):
    """What came of asking: the answer, or ``None``, and what was wrong with each that was not it.

    ``attempts_left`` tells how often it may still be asked, where the last answer ended in the
    middle. ``has_failed`` tells that the provider failed: asking something else is no use either.
    """

    answer: Shape | None
    problems: list[str]
    attempts_left: int = 0
    has_failed: bool = False


def ask(
    model: LanguageModel,
    messages: Messages,
    schema: Mapping[str, Any],
    shape: type[Shape],
    *,
    attempts: int,
    may_shorten: bool = False,
) -> Asked[Shape]:
    """Ask a model; a bad answer is told to it, and it is asked again, ``attempts`` times in all.

    A provider that fails is not asked again: its client has tried already. With ``may_shorten`` an
    answer that ends in the middle ends the asking, so that less can be asked at a time.

    Raises ``ConfigurationError`` where the model's settings are wrong, and nothing else.
    """
    problems: list[str] = []
    asked = messages
    for attempt in range(1, attempts + 1):
        try:
            return Asked(parse(_complete(model, asked, schema), shape), problems)
        except BadAnswer as error:
            problems.append(f"attempt {attempt} of {attempts}: {error}")
            if error.is_truncated and may_shorten:
                return Asked(None, problems, attempts_left=attempts - attempt)
            asked = again(messages, str(error))
        except (ProviderError, RateLimitExceeded) as error:
            problems.append(str(error))
            return Asked(None, problems, has_failed=True)
    return Asked(None, problems)


def _complete(model: LanguageModel, messages: Messages, schema: Mapping[str, Any]) -> str:
    try:
        return model.complete(messages, schema=schema)
    except (ConfigurationError, ProviderError, RateLimitExceeded):
        raise
    except AgentMemoryError as error:
        raise ProviderError(f"the language model failed: {error}") from error
    except Exception as error:  # somebody else's code: it may raise what it likes
        raise ProviderError(
            f"the language model failed: {type(error).__name__}: {error!s:.200}"
        ) from error


def name_of(model: LanguageModel) -> str:
    """Return a model's name; the name of its class, where it has none of its own."""
    name: object = None
    with contextlib.suppress(Exception):  # of whatever a property of somebody else's raises
        name = model.model
    return name[:200] if isinstance(name, str) and name.strip() else type(model).__name__
