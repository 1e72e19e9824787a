"""Language models of Anthropic, through the official client (the extra ``anthropic``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.extraction.llm.answers import BadAnswer
from agent_memory.extraction.llm.settings import ChatSettings
from agent_memory.runtime.api_client import IN_TIME, NO_KEY, ProcessClient
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import anthropic


class AnthropicChat:
    """Asks a model of Anthropic for JSON: the answer is the input of a tool that it must call.

    ``api_key`` and ``base_url`` default to ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL. The other
    settings are as for ``OpenAIChat``. Raises ``ConfigurationError`` if the package ``anthropic``
    is missing, for an invalid setting, and if there is neither a key nor a ``base_url``. Threads
    may share it.
    """

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 1000,
        timeout: float = 30,
        max_retries: int = 3,
    ) -> None:
        require_package("anthropic", extra="anthropic")
        self._settings = ChatSettings.checked(
            "anthropic",
            model,
            api_key=api_key,
            base_url=base_url,
            temperature=temperature,
            max_tokens=max_tokens,
            timeout=timeout,
            max_retries=max_retries,
        )
        # Some models accept no temperature, or cannot be forced to call a tool, and say so.
        self._left_out: frozenset[str] = frozenset()
        self._client = ProcessClient(self._make_client)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._settings.model

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        """Return the model's answer as JSON, or what it said instead.

        Raises ``RateLimitExceeded`` or ``ProviderError``; ``BadAnswer`` if the answer was cut off.
        """
        import anthropic  # noqa: PLC0415 - only this model costs it

        left_out = self._left_out
        while True:
            request = self._request(messages, schema, left_out)
            try:
                response: Any = self._settings.call(partial(self._ask, request))
                # A truncated answer may look complete: the client closes open braces.
                if response.stop_reason == "max_tokens":
                    raise self._settings.cut_off()
                answer = _answer(response)
            except anthropic.BadRequestError as error:
                refused = _refused(str(error), left_out)
                if refused is None:
                    raise self._settings.error(error) from error
                left_out |= {refused}
            except (anthropic.AnthropicError, ValueError, TypeError, AttributeError) as error:
                raise self._settings.error(error) from error
            else:
                self._left_out = left_out
                return answer

    def _ask(self, request: Mapping[str, Any], seconds: float) -> object:
        return self._client.get().messages.create(**request, timeout=seconds)

    def _request(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        left_out: frozenset[str],
    ) -> dict[str, Any]:
        name = str(schema.get("title", "answer"))
        tool = {"name": name, "description": "Give the answer.", "input_schema": dict(schema)}
        rules = [message["content"] for message in messages if message["role"] == "system"]
        request: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._settings.max_tokens,
            "system": "\n\n".join(rules),
            "messages": [dict(message) for message in messages if message["role"] != "system"],
        }
        if "tool_choice" not in left_out:
            request |= {"tools": [tool], "tool_choice": {"type": "tool", "name": name}}
        if "temperature" not in left_out:
            # The client has no argument for it any more; the models that accept it still do.
            request["extra_body"] = {"temperature": self._settings.temperature}
        return request

    def _make_client(self) -> anthropic.Anthropic:
        import anthropic  # noqa: PLC0415 - only this model costs it

        return anthropic.Anthropic(
            api_key=self._settings.api_key or NO_KEY,
            base_url=self._settings.base_url,
            timeout=self._settings.timeout,
            http_client=anthropic.DefaultHttpxClient(event_hooks=IN_TIME),
            max_retries=0,  # ``ChatSettings.call`` retries, within a bound for all attempts
        )


def _refused(message: str, left_out: frozenset[str]) -> str | None:
    """Return the part of a request that a server rejected, if it can be left out."""
    for name in ("temperature", "tool_choice"):
        if name in message and name not in left_out:
            return name
    return None


def _answer(response: Any) -> str:  # noqa: ANN401 - the client promises more than servers send
    """Return the tool's input, else what was said."""
    inputs = [block.input for block in response.content if block.type == "tool_use"]
    if len(inputs) > 1:
        raise BadAnswer(f"the answer has {len(inputs)} JSON objects, not one")
    if inputs:
        return inputs[0] if isinstance(inputs[0], str) else json.dumps(inputs[0])
    return "\n".join(block.text for block in response.content if block.type == "text")
