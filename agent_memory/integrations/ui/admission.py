"""Who is answered: the browser of the user who started the server, from the server's own page.

There are three attacks to prevent. Another web site can point its own name at this machine (DNS
rebinding), so the name by which the server is called, and the origin of a request, are checked.
Another web site can send requests here (CSRF), so each needs a key that only the page can read.
Another user of this machine can run a server of his own, and cookies ignore ports: his page would
be sent ours, so the cookie alone opens nothing.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Sequence
from email.message import Message
from typing import Final, NamedTuple

from agent_memory.integrations.loopback import LOOPBACK_NAMES

KEY_HEADER: Final = "X-Agent-Memory-Key"
_SAME_SITE: Final = ("same-origin", "none")
"""Allowed values of ``Sec-Fetch-Site``: the page itself, or a user who typed the address."""


class Credentials(NamedTuple):
    """What a browser presents with each request: a cookie, and a key that the page keeps."""

    cookie: str
    key: str


class Admission:
    """What a server lets in; ``port`` is the one that it listens on.

    ``token`` is in the address that the user is given, and lets in one browser, once.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie_name = f"agent-memory-{port}"
        self._hosts = _names_of(port)
        self._issued: Credentials | None = None
        self._exchange = threading.Lock()

    def refusal_of(self, headers: Message, *, is_write: bool) -> str | None:
        """Return why a request is refused, whoever sends it, or ``None``."""
        hosts = headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return "this server is called by another name: use the address that it printed"
        origins = headers.get_all("Origin", [])
        if origins != [f"http://{hosts[0]}"] and (origins or is_write):
            return "the request comes from another page"
        sites = headers.get_all("Sec-Fetch-Site", [])
        if any(site not in _SAME_SITE for site in sites):
            return "the request comes from another site"
        return None

    def exchange(self, token: str) -> Credentials | None:
        """Return credentials for the token; ``None`` for a wrong or a used one."""
        with self._exchange:
            if self._issued is not None or not _is_same(token, self.token):
                return None
            self._issued = Credentials(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
            return self._issued

    def admits(self, headers: Message) -> bool:
        """Return whether a request presents the cookie and the key."""
        issued = self._issued
        if issued is None:
            return False
        keys = headers.get_all(KEY_HEADER, [])
        is_known = len(keys) == 1 and _is_same(keys[0], issued.key)
        return is_known and any(
            _is_same(cookie, issued.cookie) for cookie in self._cookies(headers.get_all("Cookie"))
        )

    def set_cookie(self, cookie: str) -> str:
        """Return the header that sets a browser's cookie. Scripts cannot read it."""
        return f"{self.cookie_name}={cookie}; HttpOnly; SameSite=Strict; Path=/api/"

    def _cookies(self, headers: Sequence[str] | None) -> list[str]:
        """Return the values of our cookie. A page on another port may have set one of its name."""
        pairs = [pair.strip().partition("=") for text in headers or () for pair in text.split(";")]
        return [value for name, _, value in pairs if name == self.cookie_name]


def _names_of(port: int) -> frozenset[str]:
    names = [f"{name}:{port}" for name in LOOPBACK_NAMES]
    return frozenset([*names, *LOOPBACK_NAMES] if port == 80 else names)


def _is_same(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())
