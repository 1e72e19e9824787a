"""Every public verb is answered alike by a file and a database, or is known to be refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest
from conftest import Clock
from postgres_server import Schemas
from pydantic import BaseModel
from test_refusals import REFUSED

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.models.decision import Decision

OVEN, PIPE, NINE = "mem-oven", "mem-pipe", "mem-nine"
OF_ONE_ENGINE: Final = re.compile(
    ".*path|location|source|target|(started|completed)_at|.*size.*|.*version|server|.*_ms|.*seconds|.*bytes|.*scanned|backups|beyond|journal"
)
"""What tells of the engine, or of the time that something took."""


def imported(memory: AgentMemory, folder: Path) -> object:
    place = folder / "in.md"
    place.write_text("# Notes\n\nThe garage is locked at nine\n", encoding="utf-8")
    os.utime(place, (1_700_000_000, 1_700_000_000))  # the time of what it holds
    return memory.import_(place, format="markdown")


def exported(memory: AgentMemory, folder: Path) -> object:
    memory.export(folder / "out.jsonl", format="jsonl")
    return (folder / "out.jsonl").read_text(encoding="utf-8")


ANSWERED: Final[dict[str, Callable[[AgentMemory, Path], object]]] = {
    "add": lambda m, _: m.add("I always drink my tea without sugar"),
    "agents": lambda m, _: [agent.agent_id for agent in m.agents(root_of(m))],
    "approve": lambda m, _: m.approve(99),
    "archive": lambda m, _: m.archive(OVEN),
    "backend": lambda m, _: m.backend,
    "check": lambda m, _: m.check(),
    "check_destination": lambda m, folder: m.check_destination(folder / "new.svg").name,
    "close": lambda m, _: m.close(),
    "configure": lambda m, _: m.configure(scratchpad_max_size=7),
    "context": lambda m, _: m.context(),
    "count": lambda m, _: m.count(),
    "delete": lambda m, _: m.delete(OVEN),
    "delete_all": lambda m, _: m.delete_all(user_id="amy"),
    "delete_many": lambda m, _: m.delete_many([OVEN, PIPE]),
    "demote": lambda m, _: m.demote(OVEN),
    "decide": lambda m, _: m.decide(dismiss=[99]),
    "dismiss": lambda m, _: m.dismiss(99),
    "dump": lambda m, _: m.dump(),
    "duplicate_groups": lambda m, _: m.duplicate_groups(),
    "duplicates": lambda m, _: m.duplicates("The oven is broken!"),
    "embed": lambda m, _: m.embed(),
    "embedding_usage": lambda m, _: m.embedding_usage,
    "erase": lambda m, _: m.erase(OVEN),
    "events": lambda m, _: m.events(),
    "exists": lambda m, _: (m.exists("bob", root_of(m)), m.exists("amy", root_of(m))),
    "export": exported,
    "follow_events": lambda m, _: m.follow_events(until=lambda: True),
    "get": lambda m, _: m.get(OVEN),
    "get_all": lambda m, _: m.get_all(),
    "graph": lambda m, _: m.graph.add("Amy", "owns", "the oven") and m.graph.neighbours("Amy"),
    "history": lambda m, _: m.history(),
    "holders": lambda m, _: m.holders("oven"),
    "id_prefix": lambda m, _: m.id_prefix,
    "import_": imported,
    "info": lambda m, _: m.info(),
    "lift": lambda m, _: m.lift("nothing"),
    "limits_passed": lambda m, _: m.limits_passed(),
    "list_recent": lambda m, _: m.list_recent(),
    "location": lambda m, _: "bob" in m.location,
    "merge": lambda m, _: m.merge(OVEN, [PIPE]),
    "migrate": lambda m, _: m.migrate(embedder="wordllama"),
    "migration_plan": lambda m, _: m.migration_plan(embedder="wordllama"),
    "move_to": lambda m, folder: m.move_to(folder / "moved"),
    "on_duplicate": lambda m, _: m.on_duplicate,
    "promote": lambda m, _: m.promote(OVEN),
    "reject": lambda m, _: m.reject("the boiler leaks", reason="untrue"),
    "rejections": lambda m, _: m.rejections(),
    "reset": lambda m, _: m.reset(confirm="bob"),
    "reviews": lambda m, _: m.reviews(),
    "rollback": lambda m, _: m.rollback(),
    "scratchpad": lambda m, _: m.scratchpad(),
    "search": lambda m, _: m.search("which oven?", explain=True),
    "secrets": lambda m, _: m.secrets(),
    "session": lambda m, _: m.session({"user_id": "amy"}).list_recent(),
    "shared": lambda m, _: m.shared("nobody"),
    "statistics": lambda m, _: m.statistics(),
    "store": lambda m, _: m.store("The attic is dry"),
    "store_many": lambda m, _: m.store_many([{"content": "a fan"}, {"content": "a fan"}]),
    "suggestion": lambda m, _: m.suggestion(),
    "tidy": lambda m, _: m.tidy(),
    "unarchive": lambda m, _: m.unarchive(OVEN),
    "under_review": lambda m, _: sorted(m.under_review([OVEN, PIPE])),
    "undo": lambda m, _: m.undo(),
    "update": lambda m, _: m.update(OVEN, content="The oven is mended"),
    "validate": lambda m, _: m.validate({"content": ""}),
}
"""Each called once, on three memories."""


def root_of(memory: AgentMemory) -> str:
    """Return the root that a memory is under."""
    server, is_server, _ = memory.location.partition(" (agent ")
    return server if is_server else str(memory.path.parent.parent)


def outcome_of(
    verb: Callable[[AgentMemory, Path], object], root: str | Path, folder: Path
) -> object:
    """Return what a verb answers, or raises, and what is stored then."""
    folder.mkdir()
    with AgentMemory("bob", root=root, clock=Clock(), session_id="s", embedder=None) as memory:
        memory.store("The oven is broken", id=OVEN, tags=["kitchen"], user_id="amy")
        memory.store("A pipe drips in the kitchen", id=PIPE, importance="high")
        memory.store("The shop opens at nine", id=NINE, category="decision")
        try:
            answer = plain(verb(memory, folder))
        except AgentMemoryError as error:
            answer = type(error).__name__
    with AgentMemory("bob", root=root, clock=Clock(), embedder=None) as memory:
        return answer, plain(memory.list_recent(filters={"archived": False})), memory.count()


def plain(value: Any) -> Any:
    """Return an answer as JSON would have it, without what tells of the engine."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items() if not OF_ONE_ENGINE.fullmatch(str(k))}
    if isinstance(value, AbstractContextManager) and not isinstance(value, AgentMemory):
        with value as inner:
            return plain(inner)
    if isinstance(value, list | tuple | Iterator):
        return [plain(item) for item in value]
    if isinstance(value, str | bool | int | float | None):
        return re.sub(r"[0-9a-f]{8,}[-0-9a-f]*", "…", value) if isinstance(value, str) else value
    return type(value).__name__


def public_names() -> set[str]:
    return {name for name in dir(AgentMemory) if not name.startswith("_")}


def test_each_public_verb_is_answered_by_both_or_refused_by_one() -> None:
    refused = {name.partition(",")[0] for name in REFUSED}
    assert public_names() == ANSWERED.keys() | refused


@pytest.mark.parametrize("verb", ANSWERED)
def test_both_engines_answer_alike(schemas: Schemas, tmp_path: Path, verb: str) -> None:
    of_file = outcome_of(ANSWERED[verb], tmp_path / "root", tmp_path / "a")
    of_database = outcome_of(ANSWERED[verb], schemas.url("own"), tmp_path / "b")
    assert of_database == of_file


def test_both_engines_export_the_same_bytes_of_what_was_asked(
    schemas: Schemas, tmp_path: Path
) -> None:
    doubt = Decision(
        "DELETE",
        memory_id=OVEN,
        seen="The oven is broken",
        confidence=0.25,
        reasoning='it was "mended" – or was it?\n',
        in_review=True,
    )
    exports = []
    for place, root in ((tmp_path / "file", tmp_path), (tmp_path / "rows", schemas.url("own"))):
        with AgentMemory("bob", root=root, clock=Clock(), session_id="s", embedder=None) as memory:
            memory.store("The oven is broken", id=OVEN)
            memory._apply_decisions([doubt], keep_copies=False)
            memory.delete(OVEN)
            memory.export(place, format="store")
        exports.append(place.read_text(encoding="utf-8"))
    assert exports[0] == exports[1]
    assert "mended" in exports[0]
