"""What a file must hold after a list of verbs, told without the library: a model in plain dicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import apsw

Step = dict[str, Any]
"""One call, as JSON can hold it: its ``verb``, and what it is called with."""


@dataclass(frozen=True)
class Fact:
    """One memory."""

    content: str
    tags: tuple[str, ...] = ()
    importance: str = "medium"
    archived: bool = False
    version: int = 1
    accesses: int = 0


@dataclass(frozen=True)
class Model:
    """What a file holds, and, from ``kept`` on, what the campaign knows besides.

    ``promoted`` are those that were put into the scratchpad by hand, ``dimensions`` those of the
    model that searches use (0: none), ``kept`` what its backup holds, ``old`` the memories that a
    tidying archives, ``undone`` what an undo goes back to, ``erased`` texts that are in no byte,
    ``erased_ids`` memories that no restore brings back.
    """

    facts: Mapping[str, Fact] = field(default_factory=dict)
    history: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    promoted: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict)
    dimensions: int = 0
    kept: Model | None = field(default=None, compare=False)
    old: frozenset[str] = field(default=frozenset(), compare=False)
    undone: Model | None = field(default=None, compare=False)
    erased: frozenset[str] = field(default=frozenset(), compare=False)
    erased_ids: frozenset[str] = field(default=frozenset(), compare=False)

    def differing(self, other: Model) -> list[str]:
        """Return the parts that differ from another's."""
        parts = ("facts", "history", "promoted", "rejected", "config", "dimensions")
        return [part for part in parts if getattr(self, part) != getattr(other, part)]


PARTS_OF_FACT: Final = "id, content, tags, importance, archived, version, access_count"


def observed(path: Path) -> Model:
    """Read what a file holds, without the library. Nobody must have it open."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        rows: list[Any] = connection.execute(f"SELECT {PARTS_OF_FACT} FROM memories").fetchall()
        history: dict[str, tuple[str, ...]] = {}
        changes = "SELECT memory_id, event FROM history ORDER BY change_id"
        for memory_id, event in connection.execute(changes):
            history[str(memory_id)] = (*history.get(str(memory_id), ()), str(event))
        promoted = connection.execute(
            "SELECT id FROM memories JOIN scratchpad USING (seq) WHERE reason = 'promoted'"
        ).fetchall()
        rejected = connection.execute("SELECT lower(hex(words_hash)) FROM rejections").fetchall()
        return Model(
            facts={
                row[0]: Fact(row[1], tuple(json.loads(row[2])), row[3], bool(row[4]), *row[5:])
                for row in rows
            },
            history=history,
            promoted=frozenset(str(memory_id) for (memory_id,) in promoted),
            rejected=frozenset(str(words_hash) for (words_hash,) in rejected),
            config=json.loads(connection.execute("SELECT config FROM agent").get or "{}"),
            dimensions=_dimensions(connection),
        )
    finally:
        connection.close()


def _dimensions(connection: apsw.Connection) -> int:
    sql = """SELECT dimensions FROM embedding_models JOIN agent ON storage_backend = 'vector'
WHERE state = 'active'"""
    return int(connection.execute(sql).get or 0)


def advanced(model: Model, step: Step, told: Sequence[str] = ()) -> Model:
    """Return what a file holds after a step. ``told`` are the ids that the step gave back."""
    if step["verb"] == "search":
        return _searched(model, told)
    effect = _EFFECTS.get(step["verb"])
    after = model if effect is None else effect(model, step)
    undoable = model if step["verb"] in UNDOABLE else None
    if after.old:
        touched = {it for it in after.old if after.facts.get(it) != model.facts.get(it)}
        if step["verb"] != "store old":
            after = replace(after, old=after.old - touched)
    return replace(after, undone=undoable)


UNDOABLE: Final = frozenset(
    "store, store_many, update, delete, delete_many, archive, unarchive, import, tidy".split(", ")
)


def _changed(model: Model, event: str, facts: Mapping[str, Fact | None]) -> Model:
    """Return a model in which some memories are what is given, or gone."""
    merged = {**model.facts, **facts}
    history = dict(model.history)
    for memory_id in facts:
        history[memory_id] = (*history.get(memory_id, ()), event)
    gone = {memory_id for memory_id, fact in facts.items() if fact is None}
    return replace(
        model,
        facts={it: fact for it, fact in merged.items() if fact is not None},
        history=history,
        promoted=model.promoted - gone,
    )


def _stored(model: Model, step: Step) -> Model:
    items = step.get("items") or [step]
    new = {it["id"]: Fact(it["content"], tuple(it.get("tags", ()))) for it in items}
    model = _changed(model, "ADD", new)
    return replace(model, old=model.old | new.keys()) if step["verb"] == "store old" else model


def _updated(model: Model, step: Step) -> Model:
    new = {}
    for it in step.get("items") or [step]:
        there = model.facts[it["id"]]
        changes = {"content": it["content"], "tags": tuple(it["tags"])}
        new[it["id"]] = replace(there, **changes, version=there.version + 1)
    return _changed(model, "UPDATE", new)


def _deleted(model: Model, step: Step) -> Model:
    return _changed(model, "DELETE", dict.fromkeys(step["ids"]))


def _archived(model: Model, step: Step) -> Model:
    archived = step["verb"] != "unarchive"
    there = {it: model.facts[it] for it in step["ids"]}
    new = {
        it: replace(fact, archived=archived, version=fact.version + 1) for it, fact in there.items()
    }
    return _changed(model, "UPDATE", new)


def _tidied(model: Model, step: Step) -> Model:
    going = [it for it in model.old if not model.facts[it].archived and it not in model.promoted]
    return _archived(model, {**step, "ids": going})


def _searched(model: Model, told: Sequence[str]) -> Model:
    facts = dict(model.facts)
    for memory_id in told:
        facts[memory_id] = replace(facts[memory_id], accesses=facts[memory_id].accesses + 1)
    return replace(model, facts=facts, old=model.old - set(told), undone=None)


def _undone(model: Model, _step: Step) -> Model:
    """Go back to what was before the last change; that is a change too."""
    assert model.undone is not None
    before = model.undone
    for memory_id in {**before.facts, **model.facts}:
        there, then = model.facts.get(memory_id), before.facts.get(memory_id)
        if there == then:
            continue
        if then is None:
            model = _changed(model, "DELETE", {memory_id: None})
        elif there is None:
            back = replace(then, version=then.version + 1)
            model = _changed(model, "ADD", {memory_id: back})
        else:
            back = replace(then, version=there.version + 1, accesses=there.accesses)
            model = _changed(model, "UPDATE", {memory_id: back})
    return replace(model, promoted=before.promoted & model.facts.keys())


def _erased(model: Model, step: Step) -> Model:
    gone = frozenset(step["ids"])
    return replace(
        _without(model, gone),
        erased=model.erased | {model.facts[it].content for it in gone},
        erased_ids=model.erased_ids | gone,
    )


def _without(model: Model, gone: frozenset[str]) -> Model:
    return replace(
        model,
        facts={it: fact for it, fact in model.facts.items() if it not in gone},
        history={it: events for it, events in model.history.items() if it not in gone},
        promoted=model.promoted - gone,
        old=model.old - gone,
    )


def _restored(model: Model, _step: Step) -> Model:
    assert model.kept is not None
    return replace(
        _without(model.kept, model.erased_ids),  # a restore brings nothing erased back
        rejected=model.rejected | model.kept.rejected,
        kept=model.kept,
        erased=frozenset(),
        erased_ids=model.erased_ids,
    )


def hash_of(text: str) -> str:
    """Return the hash under which a text of lower-case words is rejected."""
    return sha256(text.encode()).hexdigest()


_EFFECTS: Final[dict[str, Callable[[Model, Step], Model]]] = {
    "store": _stored,
    "store old": _stored,
    "store_many": _stored,
    "by hand": _stored,
    "import": _stored,
    "import replacing": _updated,
    "update": _updated,
    "delete": _deleted,
    "delete_many": _deleted,
    "archive": _archived,
    "unarchive": _archived,
    "tidy": _tidied,
    "undo": _undone,
    "erase": _erased,
    "restore": _restored,
    "promote": lambda m, s: replace(m, promoted=m.promoted | {s["id"]}),
    "demote": lambda m, s: replace(m, promoted=m.promoted - {s["id"]}),
    "reject": lambda m, s: replace(m, rejected=m.rejected | {hash_of(s["text"])}),
    "lift": lambda m, s: replace(m, rejected=m.rejected - {hash_of(s["text"])}),
    **dict.fromkeys(
        ("configure", "move"),
        lambda m, s: replace(m, config={**m.config, **s["settings"]}),
    ),
    "migrate": lambda m, s: replace(m, dimensions=s["dimensions"]),
    "rollback": lambda m, _: replace(m, dimensions=0),
    "backup": lambda m, _: replace(m, kept=replace(m, kept=None)),
}
"""What each verb does; the others change nothing that is looked at."""
