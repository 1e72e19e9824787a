"""Asking a language model until its answer is usable, a few times at most."""

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
    """The result of asking: the answer, or ``None``, and what was wrong with each unusable one.

    ``attempts_left`` is how many attempts remain, if the last answer was cut off. ``has_failed`` is
    whether the provider failed: then asking something else is useless too.
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
    """Ask a model; after a bad answer, tell it why and ask again, ``attempts`` times in all.

    If the provider fails, it is not asked again: its client has already retried. With
    ``may_shorten``, a truncated answer ends the asking, so that less can be asked for.

    Raises ``ConfigurationError`` if the model's settings are wrong, and nothing else.
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
    except Exception as error:  # somebody else's code may raise anything
        raise ProviderError(
            f"the language model failed: {type(error).__name__}: {error!s:.200}"
        ) from error


def name_of(model: LanguageModel) -> str:
    """Return a model's name, or the name of its class if it has none."""
    name: object = None
    with contextlib.suppress(Exception):  # a property of somebody else's may raise anything
        name = model.model
    return name[:200] if isinstance(name, str) and name.strip() else type(model).__name__
