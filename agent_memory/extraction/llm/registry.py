"""Resolves a language model: an object, a function, a name, or C's settings of one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.extraction.llm.anthropic import AnthropicChat
from agent_memory.extraction.llm.openai import OpenAIChat
from agent_memory.models.protocols import LanguageModel

ModelFunction = Callable[..., str | Mapping[str, Any]]
"""A function of messages and a JSON schema, as lists and dicts, that returns JSON, also as text.

Its two arguments are untyped, so that a function may declare them as ``dict``."""
ModelSpec = LanguageModel | ModelFunction | str | Mapping[str, Any] | None
"""What ``as_language_model`` accepts."""

_PROVIDERS: Final[Mapping[str, Callable[..., LanguageModel]]] = {
    "openai": OpenAIChat,
    "anthropic": AnthropicChat,
}
_SETTINGS: Final = (
    "api_key base_url organization temperature max_tokens timeout max_retries".split()
)
PROMPT_SETTINGS: Final = ("custom_fact_extraction_prompt", "custom_update_memory_prompt")
"""Settings of C's ``llm`` that do not concern the model: ``extract`` and ``decide`` take them."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


class FunctionModel:
    """A function as a language model, named after the function, unless it has a ``model``."""

    def __init__(self, function: ModelFunction) -> None:
        self._function = function
        named = getattr(function, "model", None) or getattr(function, "__name__", None)
        self._model = named if isinstance(named, str) else type(function).__name__

    @property
    def model(self) -> str:
        """The function's name."""
        return self._model[:200]

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        """Return what the function answers, as a text."""
        answer = self._function(messages, schema)
        if isinstance(answer, Mapping):
            return json.dumps(dict(answer), ensure_ascii=False)
        return answer  # an answer that is not a text is refused when it is read


def as_language_model(spec: ModelSpec) -> LanguageModel | None:
    """Return the specified language model, ``None`` for none.

    ``spec`` is one of:

    - ``None`` or ``"none"``;
    - an object of the protocol ``LanguageModel``, which is returned;
    - a function ``(messages, schema) -> str | dict``;
    - a provider and a model, as in ``"openai:gpt-4.1-mini"`` and ``"anthropic:claude-sonnet-5"``;
    - settings ``llm``: a mapping of ``provider``, ``model``, and what else ``OpenAIChat`` takes. A
      key may be written ``${OPENAI_API_KEY}``, to take it from the environment.

    Raises ``ConfigurationError`` for anything else, and if the model is not available.
    """
    if spec is None or (isinstance(spec, str) and spec.strip().lower() in ("none", "")):
        return None
    if isinstance(spec, str):
        provider, _, model = spec.strip().partition(":")
        return _provider(provider)(model)
    if isinstance(spec, Mapping):
        return _of_settings(spec)
    if not isinstance(spec, type):
        if callable(getattr(spec, "complete", None)):
            return spec  # type: ignore[return-value]  # isinstance would run its properties
        if callable(spec):
            return FunctionModel(spec)
    raise ConfigurationError(
        f"{spec!r:.100} is not a language model: give a name such as 'openai:gpt-4.1-mini', a"
        " function of messages and schema, or an object with `model` and `complete`"
    )


def _provider(name: object) -> Callable[..., LanguageModel]:
    provider = _PROVIDERS.get(name.strip().lower()) if isinstance(name, str) else None
    if provider is None:
        raise ConfigurationError(
            f"unknown language model provider {name!r:.100}: use one of"
            f" {', '.join(sorted(_PROVIDERS))}, as in 'openai:gpt-4.1-mini'; any other server"
            " that speaks OpenAI's API is 'openai' with its base_url"
        )
    return provider


def _of_settings(settings: Mapping[str, Any]) -> LanguageModel:
    names = {"provider", "model", *_SETTINGS, *PROMPT_SETTINGS}
    unknown = sorted(str(name) for name in settings if name not in names)
    if unknown:
        raise ConfigurationError(
            f"a language model has no setting {unknown[0]!r:.100}: the settings are"
            f" {', '.join(sorted(names))}"
        )
    provider = _provider(settings.get("provider", "openai"))
    options = {name: settings[name] for name in _SETTINGS if settings.get(name) is not None}
    if provider is AnthropicChat and options.pop("organization", None):
        raise ConfigurationError("organization is a setting of openai alone: leave it out")
    if isinstance(options.get("api_key"), str):
        options["api_key"] = _from_environment(options["api_key"])
    return provider(settings.get("model", ""), **options)


def _from_environment(key: str) -> str:
    match = _VARIABLE.fullmatch(key.strip())
    if match is None:
        return key
    value = os.environ.get(match[1], "").strip()
    if not value:
        raise ConfigurationError(f"the variable {match[1]} is not set: it must contain the API key")
    return value
