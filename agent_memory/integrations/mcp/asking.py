"""What the server asks of a client: the folders it works in (roots), a question to its user.

Revisions with a handshake have the server send a request of its own and wait; later ones have it
answer a call with what it needs, and the client calls again with that. So whoever needs something
raises ``AnswersNeeded``, the transport gets it, and the call is answered anew: nothing may have
been done before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

ROOTS: Final = "roots"
QUESTION: Final = "question"
"""The keys under which answers come."""


class AnswersNeeded(Exception):
    """The client must be asked first. ``requests`` are methods with their parameters, by a key."""

    def __init__(self, key: str, method: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{method} must be answered first")
        self.requests = {key: {"method": method, "params": dict(params or {})}}


@dataclass(frozen=True)
class Client:
    """What a client can be asked, and what it has answered so far."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_roots(self) -> bool:
        """Whether it tells the folders that it works in."""
        return isinstance(self.capabilities.get("roots"), Mapping)

    @property
    def has_forms(self) -> bool:
        """Whether it puts questions to its user. Without a mode, forms are meant."""
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, Mapping) and (not elicitation or "form" in elicitation)

    def folders(self) -> list[str]:
        """Return the folders that it works in. Raises ``AnswersNeeded`` where it was not asked."""
        if not self.has_roots:
            return []
        if ROOTS not in self.answers:
            raise AnswersNeeded(ROOTS, "roots/list")
        roots = mapping_of(self.answers[ROOTS]).get("roots")
        uris = [mapping_of(root).get("uri") for root in roots] if isinstance(roots, list) else []
        return [path for path in map(_path_of, uris) if path]

    def truth(self, question: str, *, name: str, title: str) -> bool | None:
        """Return what its user says to a question; ``None`` where they say nothing.

        Raises ``AnswersNeeded`` where they were not asked.
        """
        if QUESTION not in self.answers:
            schema = {
                "type": "object",
                "properties": {name: {"type": "boolean", "title": title}},
                "required": [name],
            }
            params = {"mode": "form", "message": question, "requestedSchema": schema}
            raise AnswersNeeded(QUESTION, "elicitation/create", params)
        answer = mapping_of(self.answers[QUESTION])
        value = mapping_of(answer.get("content")).get(name)
        return value if answer.get("action") == "accept" and isinstance(value, bool) else None


NOBODY: Final = Client()
"""A client that can be asked nothing."""


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return what a client sent in the place of a mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def _path_of(uri: object) -> str | None:
    """Return the path of a file on this machine."""
    from urllib.request import url2pathname  # noqa: PLC0415 - 25 ms, and few clients name a folder

    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if is_here else None
