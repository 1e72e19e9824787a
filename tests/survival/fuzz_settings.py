"""Fuzz of settings, of the environment, and of rows that another program wrote."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import apsw

from agent_memory import AgentConfig, AgentMemory, MemoryContextConfig, MemoryToolConfig
from agent_memory.embeddings.settings import DIMENSIONS_VARIABLE
from agent_memory.models.limits import EMBEDDER_VARIABLE, ROOT_VARIABLE, SESSION_VARIABLE
from agent_memory.storage.sqlite.connection.journal_mode import JOURNAL_VARIABLE

from . import fuzz_texts as made
from .fuzz_core import Trials, broken_unless, workplace
from .tally import Tally
from .verbs import NAME, NOW, opened, sentences, standard

_VARIABLES: Final = (
    ROOT_VARIABLE, SESSION_VARIABLE, EMBEDDER_VARIABLE, JOURNAL_VARIABLE, DIMENSIONS_VARIABLE,
)  # fmt: skip
_OPS_EACH: Final = 8


def configured(cases: int, seed: str) -> Tally:
    """Give settings of any sort: to the file, to an object, in the environment."""
    trials = Trials("settings", seed)
    dice = trials.random
    with workplace() as folder, contextlib.chdir(folder), _home(folder):
        with opened(folder / NAME, synchronous="NORMAL") as memory:
            memory.store("The harbour", id="first")
            while trials.tally.cases < cases * 0.6:
                given = _settings(dice, AgentConfig)
                trials.run(partial(_configure, memory, given), given)
        while trials.tally.cases < cases * 0.9:
            kind = dice.choice(
                (("config", MemoryToolConfig), ("context_config", MemoryContextConfig))
            )
            given = {
                kind[0]: _settings(dice, kind[1]) if dice.random() < 0.95 else made.value(dice)
            }
            trials.run(partial(_use, folder / NAME, given), given)
        while trials.tally.cases < cases:
            variables = {name: _variable(dice) for name in dice.sample(_VARIABLES, k=2)}
            trials.run(partial(_use_environment, folder, variables), variables)
    return trials.tally


def _configure(memory: AgentMemory, given: Mapping[str, Any]) -> None:
    before = memory.configure()
    try:
        after = memory.configure(**given)
    except Exception:
        broken_unless(memory.configure() == before, "was refused and set", count="half_written")
        raise
    broken_unless(memory.configure() == after, "is not what was returned", count="lost")
    memory.search("harbour")
    memory.tidy(dry_run=True)
    memory.configure(**{name: getattr(before, name) for name in given})


def _use(path: Path, given: Mapping[str, Any]) -> None:
    with opened(path, synchronous="NORMAL", **given) as memory:
        found = memory.search("harbour")
        broken_unless(
            all(math.isfinite(it.relevance_score) for it in found), "scores are no numbers"
        )
        memory.context()
        memory.info()
        repr(memory._config)


def _use_environment(folder: Path, variables: Mapping[str, bytes]) -> None:
    for name, value in variables.items():
        os.environb[os.fsencode(name)] = value
    try:
        with AgentMemory("bob", synchronous="NORMAL") as memory:
            broken_unless(memory.path.is_relative_to(folder), f"{memory.path} is elsewhere")
            memory.store("The lantern")
            memory.search("lantern")
            memory.info()
    finally:
        for name in variables:
            os.environ.pop(name, None)


def _settings(dice: Random, model: type[Any]) -> dict[str, Any]:
    names = dice.sample(list(model.model_fields), k=dice.choice((1, 1, 2)))
    if dice.random() < 0.03:
        names.append("unknown")
    return {name: _setting(dice, name, model) for name in names}


def _setting(dice: Random, name: str, model: type[Any]) -> Any:
    sort = dice.random()
    if name == "storage_root":
        return _variable(dice).decode(errors="replace")
    if sort < 0.3:
        return made.number(dice)
    if sort < 0.5:
        return dice.choice(_GOOD)
    if sort < 0.6 and name in model.model_fields:
        return model.model_fields[name].get_default(call_default_factory=True)
    if sort < 0.7 and name == "retention":
        limit = {dice.choice(("max_memories", "max_bytes")): made.number(dice)}
        return {
            dice.choice(_RETENTION): made.number(dice),
            dice.choice(_RETENTION): {dice.choice(("core", "learning", "odd")): limit},
        } | {dice.choice(_RETENTION): made.number(dice)}
    return made.value(dice)


def _variable(dice: Random) -> bytes:
    """Return a value of an environment variable: no path to elsewhere."""
    text = "".join(it for it in made.text(dice)[:100] if it not in "/~.\x00")
    value = text.encode(errors="replace")
    return value + (b"\xff" if dice.random() < 0.1 else b"")


@contextlib.contextmanager
def _home(folder: Path) -> Iterator[None]:
    """Let the default root be in the folder."""
    old = os.environ.get("HOME", "")
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ["HOME"] = old


# Rows that another program wrote ------------------------------------------------------------------


def foreign_rows(cases: int, seed: str) -> Tally:
    """Write any value into any column, as far as the schema lets one, and use the file."""
    trials = Trials("rows of other programs", seed)
    dice = trials.random
    with workplace() as folder:
        (folder / "template").mkdir()
        standard(folder / "template")
        while trials.tally.cases < cases:
            place = folder / "store"
            shutil.copytree(folder / "template", place)
            written = _write_row(dice, place / NAME)
            if written is not None:
                _use_file(trials, place, written)
            shutil.rmtree(place)
    return trials.tally


def _write_row(dice: Random, path: Path) -> tuple[str, str, Any] | None:
    """Change one column of a row, or of all; ``None`` where the schema refuses it."""
    connection = apsw.Connection(str(path))
    try:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM pragma_table_list WHERE type = 'table'"
                " AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'embedding_index%'"
            )
        ]
        table = dice.choice(("agent",) * 4 + ("memories",) * 4 + tuple(tables))
        columns = list(connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)))
        column, kind = dice.choice(columns)
        value = _column_value(dice, column, kind)
        where = "" if dice.random() < 0.3 else " WHERE rowid = (SELECT max(rowid) FROM {0})"
        with contextlib.suppress(apsw.Error, OverflowError, UnicodeEncodeError):
            connection.execute(f"UPDATE {table} SET {column} = ?{where.format(table)}", (value,))
            return table, column, value
    finally:
        connection.close()
    return None


def _column_value(dice: Random, column: str, kind: str) -> Any:
    sort = dice.random()
    if sort < 0.05:
        return None
    if kind == "INTEGER":
        return dice.choice((0, 1, -1, 2, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63)))
    if kind == "REAL":
        return dice.choice((0.0, -1.0, 1e308, 1e-320, float("inf"), -float("inf"), 3))
    if kind == "BLOB":
        return dice.randbytes(dice.choice((0, 1, 15, 32, 32, 64)))
    if sort < 0.3:
        return made.text(dice)[:300]
    if sort < 0.6 and column == "config":
        return json.dumps(
            {name: dice.choice((1, "x", None, [], {}, 1e300)) for name in AgentConfig.model_fields}
        )
    return dice.choice(_JSON_TEXTS)


def _use_file(trials: Trials, place: Path, written: tuple[str, str, Any]) -> None:
    """Open the file, use it, mend it, and use it again: the memories must be readable."""
    dice, path = trials.random, place / NAME
    shown = f"{written[0]}.{written[1]} = {written[2]!r:.200}"
    memory = trials.run(lambda: opened(path, synchronous="NORMAL"), f"open: {shown}")
    if memory is None:
        return
    with memory:
        for name in dice.sample(tuple(_OPS), k=_OPS_EACH):
            trials.run(partial(_OPS[name], memory, place), f"{name}: {shown}")
        if written[0] == "agent":  # the memories themselves are whole
            trials.run(lambda: _read_one(memory), f"get: {shown}", allowed=())
        trials.run(lambda: memory.check(repair=True), f"repair: {shown}")
        if written[:2] == ("agent", "config"):
            trials.run(memory.configure, f"configure: {shown}", allowed=())
        trials.run(memory.check, f"check: {shown}")


def _read_one(memory: AgentMemory) -> None:
    there = memory.get("fact-5")
    broken_unless(there is not None and there.metadata == {"number": 5}, "is lost", count="lost")


def _export(name: str) -> Callable[[AgentMemory, Path], object]:
    return lambda memory, folder: memory.export(folder / f"out-{name}", format=name, overwrite=True)


_OPS: Final[dict[str, Callable[[AgentMemory, Path], object]]] = {
    "info": lambda m, _: m.info(),
    "list": lambda m, _: m.list_recent(100, filters={"archived": None}),
    "search": lambda m, _: m.search("harbour lantern 1905", explain=True),
    "filter": lambda m, _: m.count(filters={"custom_filters": {"number": [3]}, "tags": ["t1"]}),
    "search as of": lambda m, _: m.search("harbour", as_of="2026-01-30"),
    "get as of": lambda m, _: m.get("fact-5", as_of=NOW),
    "history": lambda m, _: m.history(),
    "scratchpad": lambda m, _: m.scratchpad(),
    "context": lambda m, _: m.context(),
    "duplicates": lambda m, _: m.duplicates(str(sentences(1)[0]["content"])),
    "groups": lambda m, _: list(m.duplicate_groups()),
    "undo": lambda m, _: m.undo(),
    "tidy": lambda m, _: m.tidy(dry_run=True),
    "store": lambda m, _: m.store("A new memory of the walnut"),
    "update": lambda m, _: m.update("fact-5", tags=["x"]),
    "delete": lambda m, _: m.delete("fact-6"),
    "promote": lambda m, _: m.promote("fact-7"),
    "embed": lambda m, _: m.embed(),
    "migrate": lambda m, _: m.migrate(),
    "rollback": lambda m, _: m.rollback(),
    "reject": lambda m, _: m.reject("a secret word"),
    "rejections": lambda m, _: m.rejections(),
    "configure": lambda m, _: m.configure(backups_kept=2),
    "erase": lambda m, _: m.erase(["fact-8"]),
    "backup": lambda m, _: m.backup(),
    "backups": lambda m, _: m.backups(),
    "import": lambda m, folder: m.import_(folder / "other.yaml", on_conflict="replace"),
    "agents": lambda _, folder: AgentMemory.agents(folder.parent),
    "check": lambda m, _: m.check(),
    **{f"export {name}": _export(name) for name in (
        "store", "scratchpad", "backup", "metadata", "settings", "json", "record-json", "directory",
        "sqlite",
    )},
}  # fmt: skip
_GOOD: Final[tuple[Any, ...]] = (
    "standard", "keep", "merge", "read", "private", "immediate", ["a"], True, {"rules": []},
)  # fmt: skip
_RETENTION: Final = (
    "archive_learnings_after_days", "archive_tasks_after_days", "recent_days", "limits",
    "unknown",
)  # fmt: skip
_JSON_TEXTS: Final = (
    "{}", "[]", "null", "1", '"x"', "{", "", "{}x", '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}",
    '{"a": "\\ud800"}', '{"\\u0000": 1}', "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900,
    '{"a": 1, "a": 2}', '{"status": "odd"}', '{"status": "blocked", "blockers": [1]}',
    '["a", 1, null]', '{"backup_path": 1}', '{"can_rollback": "x"}', '{"sharing": "odd"}',
    '{"categories": [""]}', '{"content": "x", "tags": "[]", "version": 99999999999999999999}',
    '{"content": "x", "access_count": 99999999999999999999, "archived": 7}',
    '{"content": 1, "tags": {}}', '{"content": "x"}', "2026-01-28", "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00.000000Z", "2026-02-30T00:00:00.000000Z", "2026-01-30T16:00:00.000000Z",
    "-1", "x" * 300,
)  # fmt: skip
