"""What the clients of remote APIs share: one client per process, web addresses, hidden keys."""

from __future__ import annotations

import json
import os
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from agent_memory.runtime import fork_safety
from agent_memory.runtime.fork_safety import Once

MASK = "***"


def mask_key(text: str, key: str) -> str:
    """Return a text with ``***`` in place of a key, also where Python or JSON escaped it.

    Some servers repeat the key in their error messages. Mask before you shorten: the beginning of a
    key is part of it.
    """
    forms = {key, repr(key)[1:-1], json.dumps(key)[1:-1]} if key else ()
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def hide_key(error: BaseException, key: str) -> None:
    """Remove a key from an error and from all errors that led to it; a traceback shows them all."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    for each in chain:
        each.args = tuple(_mask(part, key) for part in each.args)
        for name, value in vars(each).items():
            if isinstance(value, str):
                setattr(each, name, mask_key(value, key))


def _mask(part: object, key: str) -> object:
    shown = part if isinstance(part, str) else repr(part)
    masked = mask_key(shown, key)
    return part if masked == shown else masked


NO_KEY: Final = "no-key"
"""Sent to a server that needs none: the clients refuse to work without a key."""


class Closable(Protocol):
    """A client with connections."""

    def close(self) -> None:
        """Close the connections."""


Client = TypeVar("Client", bound=Closable)


class ProcessClient(Generic[Client]):
    """A client that is created on first use, once per process, and closed with its owner.

    ``make`` is a method of the owner; this does not keep the owner alive. A forked child must not
    use its parent's sockets.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = weakref.WeakMethod(make)
        self._by_process: dict[int, Once[Client]] = {}
        self._lock = fork_safety.Lock()

    def get(self) -> Client:
        """Return this process's client."""
        with self._lock.bare:
            once = self._by_process.setdefault(os.getpid(), Once(self._made))
        return once.get()

    def _made(self) -> Client:
        make = self._make()
        if make is None:
            raise ReferenceError("the owner of this client is gone")
        client = make()
        # The garbage collector sometimes collected its sockets first, which caused warnings.
        weakref.finalize(make.__self__, client.close)  # type: ignore[attr-defined]  # it is bound
        return client


_STARTED: Final = "agent_memory.started"
"""The request extension with the time at which the request began."""
_LEAST_SECONDS: Final = 0.001
"""The least timeout of a read: with 0 the socket would be non-blocking, and raise an error."""


def _note_start(request: Any) -> None:  # noqa: ANN401 - of httpx, or of the client's own copy of it
    request.extensions[_STARTED] = time.monotonic()


def _read_in_time(response: Any) -> None:  # noqa: ANN401 - as above
    """Read an answer within the timeout of its request, from the start of that.

    The client's own timeout is for each read. A server that sends a blank now and then, so that no
    proxy hangs up while its model thinks, would be waited for without end. What a read may take is
    asked for once, before the first part of an answer: so a part can come late, by what was left
    then. An answer that is known to be whole with it is taken.
    """
    httpx = sys.modules[type(response).__module__]
    extensions = response.request.extensions
    deadline = extensions[_STARTED] + extensions["timeout"]["read"]
    extensions["timeout"]["read"] = max(_LEAST_SECONDS, deadline - time.monotonic())
    length = response.headers.get("content-length")
    body = bytearray()
    for part in response.stream:
        body += part
        if time.monotonic() > deadline and str(len(body)) != length:
            raise httpx.ReadTimeout("the answer did not end in time", request=response.request)
    response.stream.close()
    response.stream = httpx.ByteStream(bytes(body))


IN_TIME: Final[dict[str, list[Callable[..., Any]]]] = {
    "request": [_note_start],
    "response": [_read_in_time],
}
"""Hooks for a client that limit each attempt to its timeout."""


def is_web_address(address: str) -> bool:
    """Return whether a text is a web address with a valid host and port."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown_address(address: str) -> str:
    """Return an address for a message, after a space; nothing if it may contain a secret.

    There may be one before an @, and after a ? or #.
    """
    return "" if any(mark in address for mark in "@?#") else f" {address!r:.100}"


def failure_of(
    error: Exception,
    *,
    service: str,
    model: str,
    key_variable: str,
    key_setting: str,
    timeout: float,
    timeout_setting: str,
    attempts: int,
) -> str | None:
    """Explain a client's error and what to do; ``None`` if the answer itself was unusable.

    The clients of OpenAI and Anthropic use the same names for their errors.
    """
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:  # an unusable answer has status 200
        advice = {
            400: "refuses the request: check the model's settings",
            401: f"refuses the API key: check {key_variable}, or {key_setting}",
            403: f"does not let this key use model {model}: check {key_variable}, and the model",
            404: f"does not know model {model}, or not at this address: check its name and"
            " base_url",
            413: "refuses a text of this length",
            429: f"refused too many requests, in {tries}: try again later, or check the"
            " account's quota",
        }.get(status, f"failed with HTTP status {status}, in {tries}: try again later")
        return f"{service} {advice} ({error!s:.300})"
    return {
        "APITimeoutError": f"{service} did not answer within {timeout:g} seconds, in {tries}:"
        f" try again later, or raise {timeout_setting}",
        "APIConnectionError": f"{service} cannot be reached, in {tries}: check the network and the"
        " base_url, or try again later",
    }.get(type(error).__name__)
