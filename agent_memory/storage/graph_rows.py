"""Turns rows of the graph's tables into models, and into the form of exports, for every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory.models.graph import EdgeView, EntityView, name_key
from agent_memory.models.times import read_stored_time
from agent_memory.storage.memory_values import column_value
from agent_memory.storage.records import Row

ENTITY_VIEW: Final = (
    "id", "name", "type", "confidence", "user_id", "run_id", "created_at", "updated_at",
)  # fmt: skip
"""The columns of an entity as shown to users."""
EDGE_VIEW: Final = (
    "id", "source", "relationship", "target", "confidence", "temporal_context", "valid_from",
    "valid_to", "user_id", "run_id", "created_at", "updated_at", "source_id", "target_id",
)  # fmt: skip
"""The columns of a relationship as shown to users."""
ENTITY_COLUMNS: Final = (
    "id", "name", "type", "confidence", "user_id", "run_id", "by_hand", "created_at", "updated_at",
)  # fmt: skip
"""The columns of an entity that exports write."""
EDGE_COLUMNS: Final = (
    "id", "source_id", "relationship", "target_id", "confidence", "temporal_context", "valid_from",
    "valid_to", "closed_by", "closing_is_undone", "user_id", "run_id", "by_hand", "created_at",
    "updated_at",
)  # fmt: skip
"""The columns of a relationship that exports write."""
STATEMENT_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "entity": ("name", "type", "confidence", "created_at", "updated_at"),
    "relationship": (
        "confidence", "temporal_context", "valid_from", "valid_to", "closed_by",
        "closing_is_undone", "created_at", "updated_at",
    ),
}  # fmt: skip
"""The columns of what a memory says about an entity or a relationship."""
RUN_STATEMENT: Final = (
    "id", "entity_name", "user_id", "memory_id", "name", "type", "confidence", "created_at",
    "updated_at", "place",
)  # fmt: skip
"""The columns of what a run says about an entity: its common name, and the run's own values."""
_DEFAULTS: Final = {"confidence": 1.0, "by_hand": 1, "closing_is_undone": 0}
_FLAGS: Final = frozenset({"by_hand", "closing_is_undone"})


# Models -------------------------------------------------------------------------------------


def entities_of_rows(
    rows: Sequence[Row],
    *,
    agent_id: str,
    aliases: Mapping[str, Sequence[str]],
    sources: Mapping[str, Sequence[str]],
) -> list[EntityView]:
    """Build the models of entities from rows with the columns ``ENTITY_VIEW``."""
    views = []
    for row in rows:
        columns = dict(zip(ENTITY_VIEW, row, strict=True))
        for name in ("created_at", "updated_at"):
            columns[name] = read_stored_time(columns[name])
        views.append(
            EntityView.model_construct(
                **columns,
                agent_id=agent_id,
                aliases=list(aliases.get(columns["id"], ())),
                source_memory_ids=list(sources.get(columns["id"], ())),
            )
        )
    return views


def grouped(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Group the second values of rows by the first."""
    values_of: dict[str, list[str]] = {}
    for of, value in rows:
        values_of.setdefault(of, []).append(value)
    return values_of


def edge_of_row(row: Row, *, agent_id: str, sources: Sequence[str]) -> EdgeView:
    """Build the model of a relationship from a row with the columns ``EDGE_VIEW``."""
    columns = dict(zip(EDGE_VIEW, row, strict=True))
    for name in ("valid_from", "valid_to", "created_at", "updated_at"):
        columns[name] = None if columns[name] is None else read_stored_time(columns[name])
    return EdgeView.model_construct(**columns, agent_id=agent_id, source_memory_ids=list(sources))


def without_twins(edges: Sequence[EdgeView]) -> list[EdgeView]:
    """Merge rows that say the same: one of them was hidden when the other was added."""
    kept: dict[tuple[str, str, str], EdgeView] = {}
    for edge in edges:
        first = kept.setdefault((edge.source_id, edge.relationship, edge.target_id), edge)
        if first is not edge:
            first.source_memory_ids.extend(edge.source_memory_ids)
    return list(kept.values())


def entities_of_run(
    rows: Sequence[Row], aliases: Mapping[str, Sequence[str]], *, run_id: str, agent_id: str
) -> list[EntityView]:
    """Build the models of the entities of a run, in the order in which it first mentioned them.

    The rows are its statements, in order, with the columns ``RUN_STATEMENT``.
    """
    statements: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        statement = dict(zip(RUN_STATEMENT, row, strict=True))
        statements.setdefault(statement["id"], []).append(statement)
    views = [
        _entity_of_run(of_entity, aliases.get(entity_id, ()), run_id, agent_id)
        for entity_id, of_entity in statements.items()
    ]
    return sorted(views, key=lambda view: view.created_at)


def _entity_of_run(
    statements: Sequence[dict[str, Any]], aliases: Sequence[str], run_id: str, agent_id: str
) -> EntityView:
    """Build one entity from the statements about it: the first name is its name, others aliases."""
    first = statements[0]
    names: dict[str, str] = {}
    for called in (*(row["name"] for row in statements if row["name"]), *aliases):
        names.setdefault(name_key(called, first["user_id"]), called)
    name, *others = names.values() or [first["entity_name"]]
    newest = sorted(statements, key=lambda row: (row["updated_at"], row["place"]), reverse=True)
    latest = {
        column: next((row[column] for row in newest if row[column] is not None), None)
        for column in ("type", "confidence")
    }
    return EntityView.model_construct(
        id=first["id"],
        name=name,
        type=latest["type"],
        aliases=others,
        confidence=1.0 if latest["confidence"] is None else latest["confidence"],
        user_id=first["user_id"],
        agent_id=agent_id,
        run_id=run_id,
        created_at=read_stored_time(min(row["created_at"] for row in statements)),
        updated_at=read_stored_time(newest[0]["updated_at"]),
        source_memory_ids=[row["memory_id"] for row in statements if row["memory_id"]],
    )


# Export and import --------------------------------------------------------------------------


def exported_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without its default values."""
    return _with_flags(
        {
            name: value
            for name, value in row.items()
            if value is not None and value != _DEFAULTS.get(name)
        }
    )


def exported_entity(row: Mapping[str, Any], aliases: Sequence[Row]) -> dict[str, Any]:
    """Return an entity without its default values, and with the memory behind each alias."""
    learned = {alias: memory_id for alias, memory_id in aliases if memory_id is not None}
    fields = {"aliases": [alias for alias, _ in aliases], "alias_sources": learned}
    return {**exported_row(row), **{name: value for name, value in fields.items() if value}}


def exported_sources(kind: str, summary: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the memories behind a row, and where each says something other than the row.

    ``rows`` are of these memories: id, ``is_undone``, and the columns of what it says.
    """
    columns = STATEMENT_COLUMNS[kind]
    assumed = _assumed(kind, summary, len(rows))
    statements = {}
    for memory_id, _, *values in rows:
        statement = dict(zip(columns, values, strict=True))
        statements[memory_id] = _with_flags(
            {name: value for name, value in statement.items() if value != assumed[name]}
        )
    fields = {
        "sources": [memory_id for memory_id, *_ in rows],
        "undone": [memory_id for memory_id, is_undone, *_ in rows if is_undone],
        "statements": {
            memory_id: statement for memory_id, statement in statements.items() if statement
        },
    }
    return {name: value for name, value in fields.items() if value}


def imported_row(columns: Sequence[str], values: Mapping[str, Any], moment: str) -> dict[str, Any]:
    """Return the columns that are given; ``moment`` is the time if none is."""
    present = {name: values[name] for name in columns if name in values}
    return {"created_at": moment, "updated_at": moment, **present}


def imported_sources(
    kind: str, values: Mapping[str, Any], moment: str
) -> list[tuple[str, int, *tuple[Any, ...]]]:
    """Return the memories behind an imported row, and what each says: by default, as the row.

    Each has the form that ``exported_sources`` takes. ``moment`` is the time if the file gives
    none.
    """
    columns = STATEMENT_COLUMNS[kind]
    undone, statements = set(values.get("undone", ())), values.get("statements", {})
    sources = values.get("sources", ())
    summary = {
        **dict.fromkeys(columns),
        **_DEFAULTS,
        "created_at": moment,
        "updated_at": moment,
        **values,
    }
    assumed = _assumed(kind, summary, len(sources))
    rows = []
    for memory_id in sources:
        statement = {**assumed, **statements.get(memory_id, {})}
        columns_of = tuple(column_value(statement[name]) for name in columns)
        rows.append((memory_id, int(memory_id in undone), *columns_of))
    return rows


def _assumed(kind: str, summary: Mapping[str, Any], sources: int) -> dict[str, Any]:
    """Return what each of the source memories is assumed to say if a file does not tell."""
    if kind == "entity" and summary["confidence"] == _DEFAULTS["confidence"]:
        return {**summary, "confidence": None}  # not stated
    if kind == "relationship" and sources > 1:
        return {**summary, "temporal_context": None}  # whose words these are is not known
    return {**summary}


def _with_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: bool(value) if name in _FLAGS else value for name, value in values.items()}
