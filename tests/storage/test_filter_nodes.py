"""The tree of a filter: what is the same, and what narrows."""

from __future__ import annotations

import pytest

from agent_memory.storage.filters import (
    EVERYTHING,
    NOT_ARCHIVED,
    NOTHING,
    All,
    AnyOf,
    Archived,
    Equals,
    Filter,
    Not,
    all_of,
)


def test_what_is_left_out_is_as_if_it_were_said() -> None:
    """A search of everything was taken for one of a user: it explained and counted for him."""
    assert All() == All(()) == all_of() == all_of(EVERYTHING, EVERYTHING) == EVERYTHING
    assert not all_of().is_narrowing
    assert AnyOf() == AnyOf(()) == NOTHING
    assert hash(All()) == hash(All(()))


def test_filters_of_two_kinds_are_not_the_same() -> None:
    assert All() != AnyOf()
    assert Equals("kind", "x") != ("kind", "x")
    assert len({All(), AnyOf(), NOT_ARCHIVED, Archived(archived=False), Not(All())}) == 4


@pytest.mark.parametrize(
    ("kind", "values", "named"),
    [
        (Equals, ("kind",), {}),
        (Equals, ("kind", "x", "y"), {}),
        (Equals, ("kind",), {"valu": "x"}),
        (Equals, ("kind", "x"), {"value": "x"}),
        (Not, (), {}),
    ],
)
def test_a_field_that_is_missing_or_unknown_is_refused(
    kind: type[Filter], values: tuple[str, ...], named: dict[str, str]
) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__} has the fields"):
        kind(*values, **named)


def test_a_filter_does_not_change() -> None:
    with pytest.raises(AttributeError):
        NOT_ARCHIVED.archived = True
