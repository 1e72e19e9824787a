"""The errors that requests are answered with: JSON-RPC's, and those of the protocol."""

from __future__ import annotations

from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""In revisions with a handshake; later ones use ``INVALID_PARAMS``."""
UNSUPPORTED_VERSION: Final = -32022


class RequestFailed(Exception):
    """A request cannot be answered. ``data`` holds details for programs.

    Tool calls do not fail in this way: their failure is a result, for the model to read.
    """

    code_after_handshake: int | None = None
    """The code in revisions that begin with a handshake, if it differs there."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:  # noqa: ANN401 - JSON
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def code_in(self, *, has_handshake: bool) -> int:
        """Return the error's code in a revision of the protocol."""
        return (has_handshake and self.code_after_handshake) or self.code


class ResourceNotFound(RequestFailed):
    """There is no resource at a URI."""

    code_after_handshake = RESOURCE_NOT_FOUND

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(INVALID_PARAMS, f"there is no resource {uri!r:.200}: {why}", {"uri": uri})
