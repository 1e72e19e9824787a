"""What the server asks of a client: the folders it works in (roots), a question to its user.

In revisions with a handshake, the server sends a request of its own and waits; in later ones, it
answers a call with what it needs, and the client repeats the call with that. So code that needs an
answer raises ``AnswersNeeded``, the transport obtains it, and the call is answered from the start:
it must have had no effect before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

ROOTS: Final = "roots"
QUESTION: Final = "question"
"""The keys of the answers."""


class AnswersNeeded(Exception):
    """The client must be asked first. ``requests`` maps keys to methods and their parameters."""

    def __init__(self, key: str, method: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{method} must be answered first")
        self.requests = {key: {"method": method, "params": dict(params or {})}}


@dataclass(frozen=True)
class Client:
    """What a client can be asked, and its answers so far."""

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_roots(self) -> bool:
        """Whether the client tells the folders that it works in."""
        return isinstance(self.capabilities.get("roots"), Mapping)

    @property
    def has_forms(self) -> bool:
        """Whether the client can ask its user. No mode means forms."""
        elicitation = self.capabilities.get("elicitation")
        return isinstance(elicitation, Mapping) and (not elicitation or "form" in elicitation)

    def folders(self) -> list[str]:
        """Return the client's folders. Raises ``AnswersNeeded`` if it was not asked yet."""
        if not self.has_roots:
            return []
        if ROOTS not in self.answers:
            raise AnswersNeeded(ROOTS, "roots/list")
        roots = mapping_of(self.answers[ROOTS]).get("roots")
        uris = [mapping_of(root).get("uri") for root in roots] if isinstance(roots, list) else []
        return [path for path in map(_path_of, uris) if path]

    def truth(self, question: str, *, name: str, title: str) -> bool | None:
        """Return the user's answer to a question; ``None`` if they gave none.

        Raises ``AnswersNeeded`` if they were not asked yet.
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
    """Return what a client sent where a mapping is expected, or an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def _path_of(uri: object) -> str | None:
    """Return the local path of a file URI."""
    from urllib.request import url2pathname  # noqa: PLC0415 - 25 ms, and few clients name a folder

    if not isinstance(uri, str):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if is_here else None
