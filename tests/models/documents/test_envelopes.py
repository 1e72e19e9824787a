"""C's envelopes: what worked, what failed and under which code, and what is never told."""

from __future__ import annotations

import inspect
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from conftest import NOW
from pydantic import ValidationError as PydanticValidationError

from agent_memory import AgentMemory, errors
from agent_memory.errors import AgentMemoryError, MemoryNotFound, ValidationError
from agent_memory.models.documents.envelopes import failure, new_request_id, success
from agent_memory.models.documents.responses import (
    AddMemoryRequest,
    ErrorCode,
    ErrorResponse,
    ResponseMetadata,
    SuccessResponse,
)
from agent_memory.models.session import SessionContext

KEY = "sk-proj-" + "Ab3dE" * 12
CODES = {
    "INVALID_SESSION", "MEMORY_NOT_FOUND", "PERMISSION_DENIED", "PROVIDER_ERROR",
    "VALIDATION_ERROR", "RATE_LIMIT_EXCEEDED", "INTERNAL_ERROR",
    "AGENT_NOT_FOUND",
}  # fmt: skip
TREE = [
    kind
    for _, kind in sorted(inspect.getmembers(errors, inspect.isclass))
    if issubclass(kind, AgentMemoryError)
]


def told(error: Exception, **arguments: Any) -> dict[str, Any]:
    """Return the error that a failure tells, once it was JSON and back."""
    text = failure(error, now=NOW, **arguments).model_dump_json()
    assert ErrorResponse.model_validate_json(text).model_dump_json() == text
    found: dict[str, Any] = json.loads(text)["error"]
    return found


def test_there_are_cs_seven_codes_and_that_of_an_agent_that_there_is_not() -> None:
    assert {code.value for code in ErrorCode} == CODES


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_of_the_library_is_told_under_its_own_code(
    kind: type[AgentMemoryError],
) -> None:
    error = kind("mem-1")
    assert kind.code in CODES
    assert told(error, request_id="req_1") | {"details": None} == {
        "code": kind.code,
        "message": str(error),
        "timestamp": "2026-01-30T16:00:00Z",
        "request_id": "req_1",
        "details": None,
    }


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("MissingAgentIdentity", "INVALID_SESSION"),
        ("InvalidSession", "INVALID_SESSION"),
        ("MemoryNotFound", "MEMORY_NOT_FOUND"),
        ("PermissionDenied", "PERMISSION_DENIED"),
        ("EmbeddingError", "PROVIDER_ERROR"),
        ("DuplicateMemory", "VALIDATION_ERROR"),
        ("ConfigurationError", "VALIDATION_ERROR"),
        ("RateLimitExceeded", "RATE_LIMIT_EXCEEDED"),
        ("StorageLocked", "INTERNAL_ERROR"),
    ],
)
def test_the_code_of_an_error(name: str, code: str) -> None:
    assert told(getattr(errors, name)("mem-1"))["code"] == code


def test_a_code_that_c_does_not_list_is_an_internal_error() -> None:
    class OfAnotherPackage(AgentMemoryError):
        code = "OUT_OF_PLUMS"

    assert told(OfAnotherPackage("no plums: buy some")) == {
        "code": "INTERNAL_ERROR",
        "message": "no plums: buy some",
        "timestamp": "2026-01-30T16:00:00Z",
    }


@pytest.mark.parametrize(
    "error",
    [
        KeyError(KEY), RuntimeError(f"/home/ann/{KEY}"), OSError(2, "gone", "/home/ann/plums"),
        UnicodeDecodeError("utf-8", KEY.encode(), 0, 1, "bad"), RecursionError(), MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_nothing_is_told_of_an_unexpected_error(error: Exception) -> None:
    text = failure(error, now=NOW).model_dump_json()
    assert json.loads(text)["error"]["code"] == "INTERNAL_ERROR"
    assert json.loads(text)["error"].keys() == {"code", "message", "timestamp"}
    for inside in (KEY, "/home", "ann", type(error).__name__, "Traceback"):
        assert inside not in text


# Details ------------------------------------------------------------------------------------


def test_the_details_name_the_memory_and_what_the_caller_adds() -> None:
    error = told(MemoryNotFound("mem-7"), details={"user_id": "ann"})
    assert error["details"] == {"memory_id": "mem-7", "user_id": "ann"}
    assert "details" not in told(AgentMemoryError("no"))


def test_a_memory_id_is_told_short_and_without_secrets() -> None:
    assert len(told(MemoryNotFound("x" * 10_000))["details"]["memory_id"]) == 80
    assert KEY not in json.dumps(told(MemoryNotFound(KEY)))


def test_the_details_list_each_fault_and_no_content(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError) as caught:
        memory.store("a plum\x00in the attic", category="fruit", tags=["t" * 60])
    details = told(caught.value)["details"]
    assert [fault["loc"] for fault in details["errors"]] == [["content"], ["category"], ["tags"]]
    assert details["errors"][1]["input"] == "fruit"
    assert all(fault.keys() == {"loc", "msg", "type", "input"} for fault in details["errors"])
    text = json.dumps(details)
    assert "attic" not in text
    assert "tttttt" not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"), (float("-inf"), "-inf"), (3, 3), (None, None), (True, True),
        ("\ud800", "\\ud800"), ("x" * 500, "x" * 79 + "…"), (b"x", "a bytes"),
        (object(), "a object"),
        ({"plum": KEY}, "a dict of 1"), ([KEY], "a list of 1"), (KEY, "[masked: OpenAI key]"),
    ],
    ids=["nan", "inf", "int", "None", "bool", "surrogate", "long", "bytes", "object", "dict",
         "list", "key"],
)  # fmt: skip
def test_what_was_given_is_told_as_json_and_in_short(value: object, shown: object) -> None:
    fault = told(ValidationError.of("limit", "must be a number", value))["details"]["errors"][0]
    assert fault["input"] == shown
    assert fault["loc"] == ["limit"]


def test_a_message_that_no_utf8_can_hold_is_told_all_the_same() -> None:
    assert told(AgentMemoryError("half a pair: \ud800"))["message"] == "half a pair: \\ud800"
    error = ValidationError("no", [{"loc": ("\udfff", 0), "msg": "\udfff", "type": "x"}])
    (fault,) = told(error)["details"]["errors"]
    assert fault == {"loc": ["\\udfff", 0], "msg": "\\udfff", "type": "x"}


def test_what_pydantic_refuses_is_a_validation_error_without_the_text() -> None:
    request = {"messages": [{"role": "user", "content": "plum\x00attic"}], "user_id": "ann"}
    with pytest.raises(PydanticValidationError) as caught:
        AddMemoryRequest.model_validate(request)
    error = told(caught.value)
    assert error["code"] == "VALIDATION_ERROR"
    assert "messages.0.content" in error["message"]
    assert "attic" not in json.dumps(error)


def test_a_wrong_session_is_told_as_one() -> None:
    with pytest.raises(ValidationError) as caught:
        SessionContext.of({"user_id": "a b"})
    error = told(caught.value)
    assert (error["code"], error["details"]["errors"][0]["loc"]) == ("INVALID_SESSION", ["user_id"])


# Success ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "counted"), [(0, 0), (0.4, 0), (249.6, 250), (90_000, 90_000), (-5_000, 0)]
)
def test_success_tells_the_time_that_it_took(milliseconds: float, counted: int) -> None:
    started = NOW - timedelta(milliseconds=milliseconds)
    answer = success({"n": 1}, started=started, now=NOW, request_id="req_1")
    assert answer.model_dump(mode="json") == {
        "success": True,
        "data": {"n": 1},
        "metadata": {
            "timestamp": "2026-01-30T16:00:00Z",
            "processing_time_ms": counted,
            "request_id": "req_1",
        },
    }


def test_data_may_be_models_lists_or_nothing(memory: AgentMemory) -> None:
    stored = memory.get(memory.store("a plum"))
    assert stored is not None
    for data, told in (
        (None, {}),
        ([], []),
        ([stored], [stored.model_dump(mode="json")]),
        ({"memory": stored, "at": NOW}, {"memory": stored.model_dump(mode="json"),
                                         "at": "2026-01-30T16:00:00Z"}),
    ):  # fmt: skip
        answer = success(data, started=NOW, now=NOW)
        assert answer.model_dump(mode="json")["data"] == told
        assert json.loads(answer.model_dump_json())["data"] == told
        assert answer.metadata.request_id is None


def test_a_success_is_never_called_a_failure() -> None:
    for value in (False, "true", None):
        with pytest.raises(PydanticValidationError):
            SuccessResponse(
                success=value,
                data={},
                metadata=ResponseMetadata(timestamp=NOW, processing_time_ms=0),
            )


def test_request_ids_differ_and_have_their_shape() -> None:
    made = [new_request_id() for _ in range(200)]
    assert len(set(made)) == 200
    assert all(re.fullmatch(r"req_[0-9a-f]{12}", one) for one in made)
