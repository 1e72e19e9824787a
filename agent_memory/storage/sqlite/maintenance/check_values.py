"""Finds values outside the memories that no import would accept, and repairs them.

They are those of the graph, reviews, rejections, tombstones, the scratchpad and the agent's row.
The types are those of ``models/portable``, one column at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ValidationError, without_secrets
from agent_memory.models.agent import Problem
from agent_memory.models.portable import (
    PortableAgent,
    PortableEdgeStatement,
    PortableEntity,
    PortableEntityStatement,
    PortableEntry,
    PortableRejection,
    PortableRelationship,
    PortableReview,
)
from agent_memory.models.record import Record
from agent_memory.models.row_repair import (
    mended_count,
    mended_label,
    mended_name,
    mended_text,
    mended_time,
)
from agent_memory.models.times import format_time, now_utc
from agent_memory.storage.change_records import Tombstone
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.tombstones import TombstoneTable

_MODELS: Final[dict[str, tuple[type[Record], dict[str, str]]]] = {
    "agent": (PortableAgent, {}),
    "scratchpad": (PortableEntry, {}),
    "rejections": (PortableRejection, {}),
    "entities": (PortableEntity, {}),
    "entity_aliases": (PortableEntity, {"alias": "name"}),
    "entity_sources": (PortableEntityStatement, {}),
    "relationships": (PortableRelationship, {}),
    "relationship_sources": (PortableEdgeStatement, {}),
    "reviews": (PortableReview, {}),
}
"""For each table, the model of a row in exports, and the fields of columns with other names."""
_LEFT_OUT: Final = frozenset(
    "id agent_id source_id target_id closed_by replaced_by words_hash config migration".split()
)
"""Ids, hashes and settings, which have checks of their own."""
_SELECT_COLUMNS: Final = """
SELECT name, CASE WHEN "notnull" THEN coalesce(dflt_value, '') END FROM pragma_table_info(?)"""
_SET_ERASED_AT: Final = "UPDATE tombstones SET erased_at = ? WHERE key = ? AND hash = ?"
_TIMES: Final = ("_at", "_from", "_to", "_date", "last_accessed")
_KEYS: Final = {"entities": "name_key", "entity_aliases": "alias_key"}
_ADVICE: Final = "no import would accept it: `check --repair` repairs it"
_LONGEST_REASON: Final = 500
_LONGEST_RELATIONSHIP: Final = 100
_MOST_REJECTED_WORDS: Final = 1000

_MENDED: Final[dict[str, Callable[[Any], Any]]] = {
    "name": mended_name,
    "alias": mended_name,
    "relationship": lambda value: mended_name(value)[:_LONGEST_RELATIONSHIP].strip(),
    "type": mended_text,
    "temporal_context": mended_text,
    "reasoning": mended_text,
    "reason": lambda value: (mended_text(value) or "")[:_LONGEST_REASON],
    "scratchpad.reason": lambda _: "stored",
    "user_id": mended_label,
    "run_id": mended_label,
    "session_id": mended_label,
    "total_queries": mended_count,
    "scratchpad_promotions": mended_count,
    "embeddings_generated": mended_count,
    "word_count": lambda value: max(1, min(value, _MOST_REJECTED_WORDS)),
    "by_hand": bool,
    "closing_is_undone": bool,
}
"""For each column, what makes a value valid; other columns get their default."""


class WrongValue(NamedTuple):
    """A value that no import would accept, where it is, and why."""

    table: str
    row_id: int
    column: str
    value: Any
    reason: str
    is_time: bool


def find_problems(database: Database) -> Iterator[Problem]:
    """Yield the wrong values. Must run inside a transaction."""
    for wrong in _wrong_values(database):
        where = f"{wrong.column} of row {wrong.row_id} of {wrong.table}"
        detail = f"{where}: {without_secrets(wrong.reason)}; {_ADVICE}"
        yield Problem(kind="wrong_row", detail=detail)
    for tombstone in _wrong_tombstones(database):
        where = f"erased_at of tombstone {tombstone.hash.hex()}"
        detail = (
            f"{where}: {tombstone.erased_at!r:.80} is not a time in the form that is stored;"
            f" {_ADVICE}"
        )
        yield Problem(kind="wrong_row", detail=detail)


def repair(database: Database) -> None:
    """Repair the values. No trigger may run meanwhile: a graph's users cannot change otherwise.

    Must run inside ``write(vetted=False)``.
    """
    now = format_time(now_utc())
    for tombstone in _wrong_tombstones(database):  # dated now: what was erased stays out
        moment = mended_time(tombstone.erased_at) or now
        database.run(_SET_ERASED_AT, (moment, tombstone.key, tombstone.hash))
    for wrong in list(_wrong_values(database)):
        column = wrong.column
        default = _columns(database, wrong.table)[column]
        if wrong.is_time:
            value = mended_time(wrong.value) or (None if default is None else now)
        else:
            mend = _MENDED.get(f"{wrong.table}.{column}") or _MENDED.get(column)
            value = None if mend is None else mend(wrong.value)
        if value is None and default:
            value = database.value(f"SELECT {default}")
        settings = f"{column} = ?"
        if wrong.table in _KEYS:  # the library recomputes the key
            settings += f", {_KEYS[wrong.table]} = NULL"
        sql = f"UPDATE {wrong.table} SET {settings} WHERE rowid = ?"
        database.run(sql, (value, wrong.row_id))


def _wrong_values(database: Database) -> Iterator[WrongValue]:
    for table, (model, fields) in _MODELS.items():
        names = [
            name
            for name in _columns(database, table)
            if name not in _LEFT_OUT and fields.get(name, name) in model.model_fields
        ]
        if not names:  # the table is missing
            continue
        types = [_type(model, fields.get(name, name)) for name in names]
        for row_id, *values in database.rows(f"SELECT rowid, {', '.join(names)} FROM {table}"):
            for name, kind, value in zip(names, types, values, strict=True):
                if value is None:
                    continue
                try:
                    checked = kind.validate_python(value)
                except PydanticValidationError as error:
                    is_time = name.endswith(_TIMES)
                    reason = str(ValidationError.from_pydantic(error))
                    yield WrongValue(table, row_id, name, value, reason, is_time)
                else:
                    if isinstance(checked, datetime) and format_time(checked) != value:
                        reason = f"a time is written like {format_time(checked)}"
                        yield WrongValue(table, row_id, name, value, reason, is_time=True)


def _wrong_tombstones(database: Database) -> list[Tombstone]:
    tombstones = TombstoneTable(database).all()
    return [each for each in tombstones if mended_time(each.erased_at) != each.erased_at]


def _columns(database: Database, table: str) -> dict[str, str | None]:
    """Return the columns of a table, with the SQL of the default of each that requires a value."""
    return dict(database.rows(_SELECT_COLUMNS, (table,)))


@cache
def _type(model: type[Record], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    return TypeAdapter(Annotated[field.annotation, field])  # type: ignore[arg-type]
