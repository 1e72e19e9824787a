"""C's session context: the ids, the type that follows from them, the permissions."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import InvalidSession, ValidationError
from agent_memory.models.session import SessionContext, SessionPermissions, SessionType

UNTIMED = settings(deadline=None, max_examples=50)
LETTERS = string.ascii_letters + string.digits + "_"


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ({}, SessionType.USER),
        ({"agent_id": "helper"}, SessionType.AGENT),
        ({"run_id": "talk-1"}, SessionType.RUN),
        ({"agent_id": "helper", "run_id": "talk-1"}, SessionType.RUN),
        ({"agent_id": None, "run_id": None}, SessionType.USER),
    ],
)
def test_the_type_follows_from_the_ids(ids: dict[str, Any], kind: SessionType) -> None:
    assert SessionContext(user_id="ann", **ids).session_type is kind
    assert SessionContext.of({"user_id": "ann", **ids}).session_type is kind
    assert SessionContext.of({"user_id": "ann", "session_type": None, **ids}).session_type is kind


def test_a_wider_type_than_follows_may_be_asked_for() -> None:
    asked = {"user_id": "ann", "agent_id": "helper", "run_id": "talk-1"}
    for kind in SessionType:
        assert SessionContext.of({**asked, "session_type": kind.value}).session_type is kind


def test_everything_is_permitted_unless_it_is_said_otherwise() -> None:
    assert SessionContext(user_id="ann").permissions == SessionPermissions(
        read=True, write=True, delete=True
    )
    told = SessionContext.of({"user_id": "ann", "permissions": {"delete": False}}).permissions
    assert (told.read, told.write, told.delete) == (True, True, False)


def test_a_session_is_its_own_and_cannot_be_changed() -> None:
    session = SessionContext(user_id="ann")
    assert SessionContext.of(session) is session
    for target, name in ((session, "user_id"), (session.permissions, "delete")):
        with pytest.raises(PydanticValidationError, match="frozen"):
            setattr(target, name, "x")


@UNTIMED
@given(
    st.text(LETTERS, min_size=1, max_size=100),
    st.text(LETTERS + "-", min_size=1, max_size=100),
)
def test_ids_of_the_allowed_characters_are_taken(name: str, run: str) -> None:
    session = SessionContext.of({"user_id": name, "agent_id": name, "run_id": run})
    assert (session.user_id, session.agent_id, session.run_id) == (name, name, run)
    assert SessionContext.model_validate_json(session.model_dump_json()) == session


@UNTIMED
@given(st.sampled_from(["user_id", "agent_id", "run_id"]), st.text(min_size=1, max_size=101))
def test_other_ids_are_refused(field: str, text: str) -> None:
    allowed = LETTERS + ("-" if field == "run_id" else "")
    is_fit = len(text) <= 100 and set(text) <= set(allowed)
    given = {"user_id": "ann", field: text}
    if is_fit:
        assert getattr(SessionContext.of(given), field) == text
    else:
        with pytest.raises(InvalidSession, match=field):
            SessionContext.of(given)


RULE = "use 1 to 100 letters (A to Z), digits and '_'"
WRONG: list[tuple[Any, str, str]] = [
    ({}, "user_id", "Field required"),
    ({"user_id": None}, "user_id", RULE),
    ({"user_id": ""}, "user_id", f"'' is not a valid id: {RULE}"),
    ({"user_id": "ann\n"}, "user_id", f"'ann\\n' is not a valid id: {RULE}"),
    ({"user_id": "a-b"}, "user_id", f"'a-b' is not a valid id: {RULE}"),
    ({"user_id": "ann@example.com"}, "user_id", "'ann@example.com' is not a valid id"),
    ({"user_id": "ä"}, "user_id", "is not a valid id"),
    ({"user_id": "٣"}, "user_id", "is not a valid id"),
    ({"user_id": "a" * 101}, "user_id", "is not a valid id"),
    ({"user_id": "\ud800"}, "user_id", "is not a valid id"),
    ({"user_id": 7}, "user_id", f"a int is not a string: {RULE}"),
    ({"user_id": b"ann"}, "user_id", "a bytes is not a string"),
    ({"user_id": "ann", "agent_id": ""}, "agent_id", RULE),
    ({"user_id": "ann", "agent_id": "a-b"}, "agent_id", f"'a-b' is not a valid id: {RULE}"),
    ({"user_id": "ann", "run_id": "a b"}, "run_id", "'a b' is not a valid id: use 1 to 100"),
    ({"user_id": "ann", "run_id": "a\n"}, "run_id", "digits, '_' and '-'"),
    ({"user_id": "ann", "session_type": "RUN"}, "session_type", "RUN needs 'run_id'"),
    ({"user_id": "ann", "session_type": "AGENT"}, "session_type", "AGENT needs 'agent_id'"),
    ({"user_id": "ann", "run_id": "r", "session_type": "AGENT"}, "session_type", "'agent_id'"),
    ({"user_id": "ann", "session_type": "TEAM"}, "session_type", "got 'TEAM'"),
    ({"user_id": "ann", "permissions": {"read": "no"}}, "permissions.read", "got 'no'"),
    ({"user_id": "ann", "permissions": {"delete": 0}}, "permissions.delete", "got 0"),
    ({"user_id": "ann", "permissions": {"admin": True}}, "permissions.admin", "not permitted"),
    ({"user_id": "ann", "team": "x"}, "team", "not permitted"),
    ({"user_id": "ann", "metadata": {"user_id": "ben"}}, "metadata", "'user_id'"),
    ({"user_id": "ann", "metadata": {"a": "x" * 1001}}, "metadata", "1,001 characters"),
    ("ann", "session", "a str is not a session"),
    (None, "session", "a NoneType is not a session"),
]


@pytest.mark.parametrize(("given", "place", "says"), WRONG, ids=[f"{p}: {s}" for _, p, s in WRONG])
def test_a_wrong_session_is_refused_with_the_value_and_the_rule(
    given: Any, place: str, says: str
) -> None:
    with pytest.raises(InvalidSession, match=re.escape(says)) as caught:
        SessionContext.of(given)
    error = caught.value
    assert isinstance(error, ValidationError)
    assert error.code == "INVALID_SESSION"
    assert str(error).startswith(f"{place}: ")
    assert [".".join(map(str, fault["loc"])) for fault in error.errors()] == [place]


def test_an_error_shows_nothing_of_what_else_was_given() -> None:
    given = {"user_id": "ann", "session_type": "RUN", "metadata": {"note": "a plum in the attic"}}
    with pytest.raises(InvalidSession) as caught:
        SessionContext.of(given)
    assert "plum" not in str(caught.value)
    assert "plum" not in repr(caught.value.errors())


def test_metadata_that_is_nested_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["in"] = endless
    with pytest.raises(InvalidSession, match="deep"):
        SessionContext.of({"user_id": "ann", "metadata": endless})
