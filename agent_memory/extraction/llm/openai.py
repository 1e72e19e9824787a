"""Language models of OpenAI, or of any server with its API, through the official client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.extraction.llm.settings import ChatSettings
from agent_memory.runtime.api_client import IN_TIME, NO_KEY, ProcessClient
from agent_memory.runtime.packages import require_package

if TYPE_CHECKING:
    import openai

_LOOSER: Final = {"json_schema": "json_object", "json_object": ""}
"""The next format to request if a server rejects one."""


class _Form(NamedTuple):
    """The form of a request; servers and models differ in what they accept."""

    answer: str = "json_schema"
    length: str = "max_tokens"
    has_temperature: bool = True

    def after(self, refusal: str) -> _Form | None:
        """Return the form to try after a rejection, ``None`` if there is no other."""
        if self.length == "max_tokens" and "max_completion_tokens" in refusal:
            return self._replace(length="max_completion_tokens")
        if self.has_temperature and "temperature" in refusal:
            return self._replace(has_temperature=False)
        if self.answer in _LOOSER:
            return self._replace(answer=_LOOSER[self.answer])
        return None


class OpenAIChat:
    """Asks OpenAI, or the server at ``base_url`` (Ollama, vLLM, ...), for JSON.

    ``api_key`` and ``base_url`` default to OPENAI_API_KEY and OPENAI_BASE_URL. ``temperature`` is 0
    to 2, ``max_tokens`` the maximum length of an answer, ``timeout`` the seconds per attempt,
    ``max_retries`` how often the client tries again after a failure.

    The answer is constrained to the schema if the server supports that; else to JSON, else not at
    all. What a server accepts is remembered. Raises ``ConfigurationError`` for an invalid setting,
    and if there is neither a key nor a ``base_url``. Threads may share it.
    """

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 1000,
        timeout: float = 30,
        max_retries: int = 3,
    ) -> None:
        self._settings = ChatSettings.checked(
            "openai",
            model,
            api_key=api_key,
            base_url=base_url,
            temperature=temperature,
            max_tokens=max_tokens,
            timeout=timeout,
            max_retries=max_retries,
        )
        require_package("openai", extra=None)
        self._organization = organization
        self._form = _Form()
        self._client = ProcessClient(self._make_client)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._settings.model

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        """Return the model's answer, or its refusal to give one.

        Raises ``RateLimitExceeded`` or ``ProviderError``; ``BadAnswer`` if the answer was cut off.
        """
        import openai  # noqa: PLC0415 - half a second that only this model costs

        form = self._form
        while True:
            request = self._request(messages, schema, form)
            try:
                response: Any = self._settings.call(partial(self._ask, request))
                self._form = form
                text = _text(response)
                if response.choices[0].finish_reason == "length":
                    raise self._settings.cut_off()
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                looser = form.after(str(error))
                if looser is None:
                    raise self._settings.error(error) from error
                form = looser
            # The client validates nothing in an answer: an HTML page ends in an AttributeError.
            except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
                raise self._settings.error(error) from error
            else:
                return text

    def _ask(self, request: Mapping[str, Any], seconds: float) -> object:
        return self._client.get().chat.completions.create(**request, timeout=seconds)

    def _request(
        self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], form: _Form
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(message) for message in messages],
            form.length: self._settings.max_tokens,
        }
        if form.has_temperature:
            request["temperature"] = self._settings.temperature
        if form.answer == "json_schema":
            named = {"name": schema.get("title", "answer"), "schema": dict(schema), "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif form.answer:
            request["response_format"] = {"type": form.answer}
        return request

    def _make_client(self) -> openai.OpenAI:
        import openai  # noqa: PLC0415 - half a second that only this model costs

        return openai.OpenAI(
            api_key=self._settings.api_key or NO_KEY,
            base_url=self._settings.base_url,
            organization=self._organization,
            timeout=self._settings.timeout,
            http_client=openai.DefaultHttpxClient(event_hooks=IN_TIME),
            max_retries=0,  # ``ChatSettings.call`` retries, within a bound for all attempts
        )


def _text(response: Any) -> str:  # noqa: ANN401 - the client promises more than servers send
    """Return what the model said; a refusal is not JSON, and is reported as such."""
    if not response.choices:
        error = getattr(response, "error", None)  # OpenRouter sends errors with status 200
        raise ValueError(f"there are no choices{f', but an error: {error}' if error else ''}")
    message = response.choices[0].message
    text = message.content or getattr(message, "refusal", None) or ""
    if isinstance(text, list):  # Mistral's models send their thoughts first, then the answer
        text = "".join(part.get("text", "") for part in text if part.get("type") == "text")
    if not isinstance(text, str):
        raise TypeError(f"the content is a {type(text).__name__}")
    return text
