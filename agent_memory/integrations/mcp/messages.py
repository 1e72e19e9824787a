"""The messages of MCP as the stdio server answers them: JSON-RPC 2.0, in two dialects.

Revisions up to 2025-11-25 begin with a handshake (``initialize``); from 2026-07-28 on each request
states its revision in its ``_meta``. Each request shows which it is, so no state is kept, and
nothing has to come first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_memory.integrations.mcp.asking import NOBODY, AnswersNeeded, Client, mapping_of
from agent_memory.integrations.mcp.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RequestFailed,
)
from agent_memory.integrations.mcp.project_server import AnyServer

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS: Final = ("2026-07-28",)

_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
# Clients may not cache results: any process may store at any time.
_NOT_KEPT: Final = {"ttlMs": 0, "cacheScope": "private"}
_NO_CACHE: Final = ("tools/call", "prompts/get")
"""Methods whose results have no caching fields."""
_MAY_ASK: Final = ("tools/call", "prompts/get", "resources/read")
"""Methods that may ask the client for something in revisions without a handshake."""
_LISTS: Final = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}
"""The other methods that depend on the agent, with what they list: nothing, before it is known."""
# Some line readers take these for line ends; JSON allows them in strings, and their escapes.
_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}

RequestId = str | int


@dataclass(frozen=True, slots=True)
class Request:
    """A message that is to be answered."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is not answered."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The client's response to a request of ours; ``None`` is an error."""

    id: RequestId
    result: Mapping[str, Any] | None


class BadMessage(RequestFailed):
    """The input is not a message. ``request_id`` is its id, if it has one."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


def read_message(line: bytes) -> Request | Notification | Answer | None:
    """Return the message on a line, or ``None`` for a response that cannot be to a request of ours.

    Raises ``BadMessage``.
    """
    try:
        message = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadMessage(PARSE_ERROR, f"a line that is not JSON: {error}"[:200]) from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise BadMessage(INVALID_REQUEST, "not a message of JSON-RPC 2.0 (one object a line)")
    if "method" not in message and ("result" in message or "error" in message):
        number, result = message.get("id"), message.get("result")
        content = result if isinstance(result, dict) else None
        return Answer(number, content) if isinstance(number, str) else None
    return _read(message)


def _read(message: dict[str, Any]) -> Request | Notification:
    has_id, number = "id" in message, message.get("id")
    is_name = isinstance(number, str | int) and not isinstance(number, bool)
    request_id = number if is_name else None
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise BadMessage(INVALID_REQUEST, "method must be a string", request_id)
    if has_id and request_id is None:
        raise BadMessage(INVALID_REQUEST, "id must be a string or a whole number")
    if params is not None and not isinstance(params, dict):
        raise BadMessage(INVALID_REQUEST, "params must be an object", request_id)
    if request_id is None:
        return Notification(method, params or {})
    return Request(request_id, method, params or {})


def answer(server: AnyServer, request: Request, client: Client = NOBODY) -> dict[str, Any]:
    """Return the message that answers a request, with its result or its error.

    Raises ``AnswersNeeded`` if the ``client``, one with a handshake, must be asked first.
    """
    has_handshake = not _is_modern(request)
    try:
        result = _result(server, request, client, has_handshake=has_handshake)
    except RequestFailed as failure:
        return failed(request.id, failure, has_handshake=has_handshake)
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


def failed(
    request_id: RequestId | None, failure: RequestFailed, *, has_handshake: bool = True
) -> dict[str, Any]:
    """Return the message that reports an error."""
    error = {"code": failure.code_in(has_handshake=has_handshake), "message": failure.message}
    if failure.data is not None:
        error["data"] = failure.data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def write_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line. Lone surrogates, which cannot be encoded, become ``?``.

    Raises ``ValueError`` for values that JSON does not have.
    """
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_LINE_ENDS).encode(errors="replace") + b"\n"


def _is_modern(request: Request) -> bool:
    return request.method != "initialize" and _VERSION in mapping_of(request.params.get("_meta"))


def _result(
    server: AnyServer, request: Request, client: Client, *, has_handshake: bool
) -> dict[str, Any]:
    if has_handshake:
        if request.method == "initialize":
            return _shake_hands(server, request.params)
        if request.method == "ping":
            return {}
        return server.answer(request.method, request.params, client)
    _check_envelope(request.params["_meta"])
    result: Mapping[str, Any] = (
        {
            "supportedVersions": list(MODERN_VERSIONS),
            "capabilities": server.capabilities,
            "instructions": server.instructions,
            **complete("server/discover", {}),
        }
        if request.method == "server/discover"
        else answer_without_handshake(server, request.method, request.params)
    )
    return {**result, "_meta": {**result.get("_meta", {}), _SERVER_INFO: server.info}}


def answer_without_handshake(
    server: AnyServer, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the result of a request that states its client's abilities, or what it needs first."""
    capabilities = mapping_of(params.get("_meta")).get(_CLIENT_CAPABILITIES)
    client = Client(mapping_of(capabilities), mapping_of(params.get("inputResponses")))
    try:
        return complete(method, server.answer(method, params, client))
    except AnswersNeeded as needed:
        if method in _MAY_ASK:
            return {"resultType": "input_required", "inputRequests": needed.requests}
        return complete(method, {_LISTS[method]: []})


def complete(method: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the fields that revisions without a handshake require."""
    kept = {} if method in _NO_CACHE else _NOT_KEPT
    return {"resultType": "complete", **kept, **result}


def _shake_hands(server: AnyServer, params: Mapping[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise RequestFailed(INVALID_PARAMS, "params.protocolVersion must be a string")
    return {
        "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": server.capabilities,
        "serverInfo": server.info,
        "instructions": server.instructions,
    }


def _check_envelope(meta: Mapping[str, Any]) -> None:
    """Refuse a request of an unsupported revision."""
    version = meta[_VERSION]
    if not isinstance(version, str) or _CLIENT_CAPABILITIES not in meta:
        message = f"params._meta must have {_VERSION}, a string, and {_CLIENT_CAPABILITIES}"
        raise RequestFailed(INVALID_PARAMS, message)
    if version not in MODERN_VERSIONS:
        supported = {"supported": list(MODERN_VERSIONS), "requested": version}
        raise RequestFailed(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
