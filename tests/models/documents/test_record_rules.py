"""C's rules for the parts of a record: ids, embeddings, metadata."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_memory.models.documents.record import MemoryRecord, MemoryRecordMetadata, SearchQuery
from agent_memory.models.documents.record_rules import (
    RESERVED_METADATA_KEYS,
    is_uuid4,
    validate_embedding,
    validate_record_metadata,
)

UNTIMED = settings(deadline=None, max_examples=50)
UUID4 = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def a_record(**fields: Any) -> MemoryRecord:
    least = {"id": UUID4, "content": "a plum", "metadata": {"created_at": "2024-01-15T10:30:00Z"}}
    return MemoryRecord.model_validate({**least, **fields})


# UUIDs --------------------------------------------------------------------------------------


@UNTIMED
@given(st.uuids(version=4), st.sampled_from([str.upper, str.lower, str.title]))
def test_every_uuid_of_version_4_is_one_in_any_case(
    made: UUID, written: Callable[[str], str]
) -> None:
    assert is_uuid4(written(str(made)))


@UNTIMED
@given(st.uuids(version=1) | st.uuids(version=3) | st.uuids(version=5))
def test_no_uuid_of_another_version_is_one(made: UUID) -> None:
    assert not is_uuid4(str(made))


@pytest.mark.parametrize(
    "text",
    [
        "", "7c9e6679742540de944be07fc1f90ae7", UUID4 + "\n", "{" + UUID4 + "}", UUID4[:-1],
        UUID4 + "0", UUID4.replace("-", "_"), "7c9e667-97425-40de-944b-e07fc1f90ae7",
        UUID4.replace("-944b", "-c44b"), UUID4.replace("7c", "7g"), "urn:uuid:" + UUID4,
        UUID4.replace("7", "\uff17"), None, 4, uuid4(), UUID4.encode(),
    ],
)  # fmt: skip
def test_what_is_no_uuid_of_version_4(text: object) -> None:
    assert not is_uuid4(text)


@pytest.mark.parametrize("memory_id", [UUID4, UUID4.upper(), "mem-a3f2c1b4e5d6", "entity_001", "0"])
def test_a_record_has_a_uuid_or_an_id_of_ours(memory_id: str) -> None:
    assert a_record(id=memory_id).id == memory_id


@pytest.mark.parametrize("memory_id", ["", "a b", "mem-1\n", "x" * 129, "a/b", 7, None])
def test_a_record_has_no_other_id(memory_id: object) -> None:
    with pytest.raises(ValidationError, match="id"):
        a_record(id=memory_id)


# Embeddings ---------------------------------------------------------------------------------


@UNTIMED
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(), min_size=1),
    st.sampled_from([list, tuple, iter]),
)
def test_finite_numbers_are_an_embedding(values: list[float], kind: Callable[[Any], Any]) -> None:
    try:
        numbers = [float(value) for value in values]
    except OverflowError:  # JSON may have a whole number that no float can hold
        assert not validate_embedding(values)[0]
        return
    assert validate_embedding(values) == (True, None)
    assert validate_embedding(values, len(values)) == (True, None)
    record = a_record(embedding=kind(values))
    assert record.embedding == numbers
    assert json.loads(record.model_dump_json())["embedding"] == numbers


WRONG_EMBEDDINGS: list[tuple[Any, str]] = [
    ([], "empty"),
    ([0.5, float("nan")], "nan in place 2: it must be finite"),
    ([float("inf")], "inf in place 1"),
    ([0.5, -float("inf"), 1.0], "-inf in place 2"),
    ([10**400], "in place 1: it must be finite"),
    ([0.5, "0.5"], "a str in place 2"),
    ([0.5, None], "a NoneType in place 2"),
    ([True], "a bool in place 1"),
    ([[0.5]], "a list in place 1"),
    ([1j], "a complex in place 1"),
    ("0.5", "is a str"),
    (b"\x01\x02", "is a bytes"),
    ({0.5: 1.0}, "is a dict"),
    (0.5, "is a float"),
]


@pytest.mark.parametrize(("values", "says"), WRONG_EMBEDDINGS, ids=[s for _, s in WRONG_EMBEDDINGS])
def test_a_wrong_embedding_is_refused_and_the_reason_names_it(values: Any, says: str) -> None:
    is_valid, reason = validate_embedding(values)
    assert not is_valid
    assert says in (reason or "")
    with pytest.raises(ValidationError) as caught:
        a_record(embedding=values)
    (fault,) = caught.value.errors()
    assert fault["loc"] == ("embedding",)
    assert says in fault["msg"]


def test_an_embedding_has_as_many_numbers_as_are_configured() -> None:
    assert validate_embedding([0.5] * 3, 3) == (True, None)
    assert validate_embedding([0.5] * 3, 4) == (False, "Embedding has 3 numbers: it must have 4")
    assert validate_embedding([0.5] * 3, 2) == (False, "Embedding has 3 numbers: it must have 2")


def test_a_vector_of_numpy_is_an_embedding() -> None:
    numpy = pytest.importorskip("numpy")
    vector = numpy.asarray([0.5, 0.25], dtype=numpy.float32)
    assert validate_embedding(vector, 2) == (True, None)
    assert a_record(embedding=vector).model_dump(mode="json")["embedding"] == [0.5, 0.25]
    assert not validate_embedding(numpy.asarray([0.5, numpy.nan]))[0]
    assert not validate_embedding(numpy.asarray([[0.5]]))[0]


# Metadata -----------------------------------------------------------------------------------


def nested(levels: int, *, by: str = "mapping") -> dict[str, Any]:
    """Return metadata of so many levels."""
    inner: Any = {"end": 1} if by == "mapping" else [1]
    for _ in range(levels - 2):
        inner = {"in": inner} if by == "mapping" else [inner]
    return {"in": inner}


KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=100)
VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | KEYS
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
METADATA: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    KEYS.filter(lambda key: key not in RESERVED_METADATA_KEYS),
    VALUES
    | st.lists(VALUES | st.dictionaries(KEYS, VALUES, max_size=2), max_size=3)
    | st.dictionaries(KEYS, st.lists(st.lists(VALUES, max_size=2), max_size=2), max_size=2),
    max_size=4,
)


@UNTIMED
@given(METADATA)
def test_metadata_within_the_limits_comes_back_as_it_was(metadata: dict[str, Any]) -> None:
    assert validate_record_metadata(metadata) == (True, None)
    record = a_record(metadata={"created_at": "2024-01-15", "custom_metadata": metadata})
    again = MemoryRecord.model_validate_json(record.model_dump_json())
    assert again.metadata.custom_metadata == metadata


@pytest.mark.parametrize("by", ["mapping", "list"])
def test_metadata_is_five_levels_deep_at_most(by: str) -> None:
    assert validate_record_metadata(nested(5, by=by)) == (True, None)
    for levels in (6, 7, 5_000):
        is_valid, reason = validate_record_metadata(nested(levels, by=by))
        assert not is_valid
        assert "over 5 levels deep" in (reason or "")


LIMITS: list[tuple[dict[Any, Any], str | None]] = [
    ({}, None),
    ({"k" * 100: 1}, None),
    ({"k" * 101: 1}, "a key of 101 characters ('kkkkkkkkkkkkkkkkkkkk'…): at most 100 are allowed"),
    ({"in": [{"ü" * 101: 1}]}, "metadata.in[0] has a key of 101 characters"),
    ({"note": "x" * 1_000}, None),
    ({"note": "\U0001f600" * 1_000}, None),
    ({"note": "x" * 1_001}, "metadata.note has 1,001 characters: at most 1,000 are allowed"),
    ({"in": {"list": ["", "x" * 1_001]}}, "metadata.in.list[1] has 1,001 characters"),
    ({"in": {"user_id": "further down it may stand"}}, None),
    ({"n": float("nan")}, "nan"),
    ({"n": 2**63}, "over 64 bits"),
    ({"t": "a\x00b"}, "NUL"),
    ({"t": "\ud800"}, "UTF-8"),
    ({"t": b"bytes"}, "bytes"),
    ({1: "a"}, "a metadata key is a int"),
]


@pytest.mark.parametrize(("metadata", "says"), LIMITS)
def test_the_limits_of_metadata(metadata: dict[str, Any], says: str | None) -> None:
    is_valid, reason = validate_record_metadata(metadata)
    assert is_valid is (says is None)
    assert (says or "") in (reason or "")


@pytest.mark.parametrize(
    "key", ["user_id", "agent_id", "run_id", "created_at", "updated_at", "memory_type"]
)
def test_a_reserved_key_is_refused_by_name(key: str) -> None:
    is_valid, reason = validate_record_metadata({"fine": 1, key: "x"})
    assert not is_valid
    assert repr(key) in (reason or "")
    with pytest.raises(ValidationError, match=repr(key)):
        a_record(metadata={"created_at": "2024-01-15", "custom_metadata": {key: "x"}})


@pytest.mark.parametrize("metadata", [None, [], "text", 5, [("a", 1)]])
def test_metadata_that_is_no_mapping_is_refused(metadata: Any) -> None:
    assert not validate_record_metadata(metadata)[0]


# The rest of a record -----------------------------------------------------------------------

WRONG_FIELDS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"content": ""}, ("content",)),
    ({"content": " \n\t"}, ("content",)),
    ({"content": "x" * 10_001}, ("content",)),
    ({"content": "\udfff"}, ("content",)),
    ({"content": None}, ("content",)),
    ({"score": float("nan")}, ("score",)),
    ({"version": 0}, ("version",)),
    ({"metadata": {}}, ("metadata", "created_at")),
    ({"metadata": {"created_at": "yesterday"}}, ("metadata", "created_at")),
    ({"metadata": {"created_at": 1705314600}}, ("metadata", "created_at")),
    *(
        ({"metadata": {"created_at": "2024-01-15", name: value}}, ("metadata", name))
        for name, value in (
            ("memory_type", "OTHER"), ("category", ""), ("tags", "food"), ("user_id", " "),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "place"), WRONG_FIELDS)
def test_a_wrong_field_is_refused_at_its_place(
    fields: dict[str, Any], place: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        a_record(**fields)
    assert [fault["loc"] for fault in caught.value.errors()] == [place]


def test_a_content_has_ten_thousand_characters_at_most() -> None:
    assert len(a_record(content="\U0001f600" * 10_000).content) == 10_000


def test_a_time_is_in_utc_however_it_was_given() -> None:
    for text in ("2024-01-15T12:30:00+02:00", "2024-01-15T10:30:00", "2024-01-15T10:30:00.000Z"):
        told = MemoryRecordMetadata.model_validate({"created_at": text})
        assert told.model_dump(mode="json") == {"created_at": "2024-01-15T10:30:00Z"}


@pytest.mark.parametrize(
    "fields",
    [{"limit": 0}, {"limit": 101}, {"limit": True}, {"limit": "5"}, {"limit": 5.0},
     {"score_threshold": 1.1}, {"score_threshold": -0.1}, {"score_threshold": float("nan")},
     {"filters": {"owner": "ann"}}, {"query": None}],
    ids=str,
)  # fmt: skip
def test_a_query_that_cannot_be_is_refused_at_its_field(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        SearchQuery.model_validate({"query": "plums", **fields})
    assert caught.value.errors()[0]["loc"][0] == next(iter(fields))


@UNTIMED
@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    assert SearchQuery(query=text).query == text
