"""The settings of the clients of language models, and the translation of their errors."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from agent_memory.errors import ConfigurationError, ProviderError, RateLimitExceeded
from agent_memory.extraction.llm.answers import BadAnswer
from agent_memory.models.fields import is_key
from agent_memory.runtime.api_client import failure_of, hide_key, is_web_address, shown_address

Response = TypeVar("Response")

_MOST_TOKENS: Final = 1_000_000
_LEAST_SECONDS: Final = 0.001
_PASSING: Final = (408, 409, 429)
"""Statuses, besides those of 500 and above, after which the same request may succeed."""
_LONGEST_WAIT: Final = 8.0
_LONGEST_ASKED: Final = 60.0
"""Maximum seconds that a server may ask to wait (``Retry-After``)."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a provider is called (C, 10 and 11).

    ``temperature`` is 0 to 2, ``max_tokens`` the maximum length of an answer, ``timeout`` the
    seconds per attempt, ``max_retries`` how often the client tries again, with growing waits.
    """

    service: str
    model: str
    api_key: str = field(repr=False)
    base_url: str | None = field(repr=False)  # may contain a password
    temperature: float
    max_tokens: int
    timeout: float
    max_retries: int

    @classmethod
    def checked(
        cls,
        service: str,
        model: str,
        *,
        api_key: str | None,
        base_url: str | None,
        temperature: float,
        max_tokens: int,
        timeout: float,
        max_retries: int,
    ) -> ChatSettings:
        """Return the settings; the key and the address default to the environment's.

        Raises ``ConfigurationError`` for an invalid setting, and if there is neither a key nor an
        address of another server.
        """
        prefix = service.upper()
        address = _text(base_url, "base_url") or _environment(f"{prefix}_BASE_URL")
        key = _text(api_key, "api_key") or _environment(f"{prefix}_API_KEY")
        _refuse_address(address, f"{prefix}_BASE_URL")
        _refuse_key(key, service, needed=not address)
        return cls(
            service=service,
            model=_model(model, service),
            api_key=key,
            base_url=address or None,
            temperature=_number(temperature, "temperature", 0, 2),
            max_tokens=_whole(max_tokens, "max_tokens", 1, _MOST_TOKENS),
            timeout=_number(timeout, "timeout", 0.001, 86_400),
            max_retries=_whole(max_retries, "max_retries", 0, 20),
        )

    def call(self, request: Callable[[float], Response]) -> Response:
        """Return the result of a request, which is passed its seconds; retry it if it fails.

        All attempts together take no longer than ``timeout`` for each: a provider that hangs is
        retried at once, one that answers with an error after a growing wait, or after as long as it
        asks for. Raises what the last attempt raised.
        """
        deadline = time.monotonic() + self.timeout * (self.max_retries + 1)
        attempt = 0
        while True:
            left = deadline - time.monotonic()
            try:
                return request(max(_LEAST_SECONDS, min(self.timeout, left)))
            except Exception as error:  # a client's own, whatever its name
                wait = _seconds_to_wait(error, attempt)
                is_last = attempt == self.max_retries
                if is_last or wait is None or time.monotonic() + wait >= deadline:
                    raise
            time.sleep(wait)
            attempt += 1

    def cut_off(self) -> BadAnswer:
        """Return the error for an answer that exceeds the maximum length.

        Models that think first may have used all of it before they said a word.
        """
        return BadAnswer(
            f"the answer ends in the middle, at {self.max_tokens:,} tokens: raise max_tokens",
            is_truncated=True,
        )

    def error(self, error: Exception) -> ProviderError | RateLimitExceeded:
        """Return our error for one of the client's; it says what to do, but never the key."""
        hide_key(error, self.api_key)
        failure = failure_of(
            error,
            service=self.service,
            model=self.model,
            key_variable=f"{self.service.upper()}_API_KEY",
            key_setting="the model's api_key",
            timeout=self.timeout,
            timeout_setting="the model's timeout",
            attempts=self.max_retries + 1,
        )
        if failure is None:
            failure = (
                f"the answer of {self.service} for model {self.model} is not a language model's"
                f" ({type(error).__name__}: {error!s:.200}): check the base_url, or try again later"
            )
        is_rate_limit = getattr(error, "status_code", None) == 429
        return (RateLimitExceeded if is_rate_limit else ProviderError)(failure)


def _environment(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _text(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} is a {type(value).__name__}: give a string")
    return value.strip()


def _model(model: object, service: str) -> str:
    name = _text(model, "model")
    if not name or len(name) > 200:
        raise ConfigurationError(
            f"the language model of {service} has no name: give one, such as"
            f" {'gpt-4.1-mini' if service == 'openai' else 'claude-sonnet-5'!r}"
        )
    return name


def _number(value: object, name: str, lowest: float, highest: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not lowest <= value <= highest:  # type: ignore[operator]
        raise ConfigurationError(
            f"{name} is {value!r:.80}: give a number from {lowest:g} to {highest:g}"
        )
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, name: str, lowest: int, highest: int) -> int:
    number = _number(value, name, lowest, highest)
    if number != int(number):
        raise ConfigurationError(f"{name} is {number:g}: give a whole number")
    return int(number)


def _refuse_address(address: str, variable: str) -> None:
    """Refuse an invalid web address; if it may contain a secret, it is not shown."""
    if address and (not is_web_address(address) or "?" in address or "#" in address):
        raise ConfigurationError(
            f"the base_url{shown_address(address)} is not a web address without ? and #:"
            f" write it like http://localhost:11434/v1 (base_url, or {variable})"
        )


def _refuse_key(key: str, service: str, *, needed: bool) -> None:
    variable = f"{service.upper()}_API_KEY"
    if not key and needed:
        raise ConfigurationError(
            f"there is no key for {service}: set {variable}, or the model's api_key, or use"
            " no language model"
        )
    if not is_key(key):
        raise ConfigurationError(
            f"the API key has a space or another character that no key has: check {variable}"
            " and the model's api_key"
        )


def _seconds_to_wait(error: Exception, attempt: int) -> float | None:
    """Return how long to wait before retrying a failed request, ``None`` if that is useless.

    The clients of both services name their errors alike.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APITimeoutError" in names:
        return 0.0  # the wait was the timeout
    status = getattr(error, "status_code", None)
    is_passing = isinstance(status, int) and (status in _PASSING or status >= 500)
    if not is_passing and "APIConnectionError" not in names:
        return None
    growing = min(0.5 * 2.0**attempt, _LONGEST_WAIT)
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        asked = float(headers.get("retry-after-ms") or "nan") / 1000
        asked = float(headers.get("retry-after") or "nan") if math.isnan(asked) else asked
    except ValueError:  # a date
        return growing
    return asked if 0 < asked <= _LONGEST_ASKED else growing
