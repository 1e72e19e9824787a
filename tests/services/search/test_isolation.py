"""No input of an agent reaches another agent's files: every verb, with names that could be paths.

The line: what a tool's caller (a model) can say is an agent's input, and reaches its own file
alone: contents, ids, tags, filters, names of sessions, users, runs and of agents in ``shared``. A
path that a person gives (``export``, ``import_``, ``backup``, ``restore``, ``rebuild``, ``open``)
may be any that the system lets that person read or write. What a file holds is data, never a path
to follow.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Visitor, engine_of
from embedding_server import WordEmbedder

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    PermissionDenied,
    StorageUnavailable,
    ValidationError,
    sanitize_agent_id,
)
from agent_memory.cli import run
from agent_memory.storage.filters import Equals
from agent_memory.storage.records import Term
from agent_memory.storage.sqlite import keyword_index

CANARY = "zebrafinch"
"""A word that is in the victim's files, and nowhere else."""
QUESTION = "What sings in the aviary of the head office?"


@pytest.fixture
def victim(root: Path) -> Path:
    """Make a private agent with memories, a history, backups and YAML files; return its place."""
    with AgentMemory("victim", root=root, session_id="of-victim") as memory:
        memory.store(f"A {CANARY} sings in the aviary of the head office", id="mem-canary")
        memory.store(f"The {CANARY} was deleted", id="mem-gone", tags=[CANARY], user_id=CANARY)
        memory.delete("mem-gone")
        memory.backup()
        memory.tidy()
        place = memory.path.parent
        for name, form in (
            ("scratchpad.yaml.backup", "backup"),
            ("scratchpad.yaml", "scratchpad"),
            ("store.yaml", "store"),
            ("metadata.json", "metadata"),
        ):
            memory.export(place / name, format=form)
    return place


@pytest.fixture
def before(victim: Path) -> dict[str, bytes]:
    return bytes_of(victim)


@pytest.fixture
def mallory(root: Path, victim: Path, before: dict[str, bytes]) -> Iterator[AgentMemory]:
    """Open the memory of the agent that tries; afterwards nothing of the victim is in its place."""
    with AgentMemory("mallory", root=root, session_id="s-1") as memory:
        memory.store("What sings in the aviary is not known", id="mem-own", tags=["bird"])
        memory.backup()
        yield memory
    assert bytes_of(victim) == before
    for name, content in bytes_of(root / "mallory").items():
        assert CANARY.encode() not in content, name


def bytes_of(place: Path) -> dict[str, bytes]:
    """Return every file under a place that is not reached by a link, and what it holds."""
    found = {}
    for folder, _, names in os.walk(place):
        for path in (Path(folder) / name for name in names):
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(place))] = path.read_bytes()
    return found


def names_of(victim: Path) -> list[str]:
    """Return texts that lead to the victim where they are taken for a path, URI, SQL or name."""
    db = victim / "memories.db"
    return [
        "victim", "victim/", "./victim", "../victim", "../victim/memories.db", "../../root/victim",
        "mallory/../victim", "victim\\memories.db", "..\\victim", str(victim), str(db),
        f"{db}-wal", db.as_uri(), f"{db.as_uri()}?mode=ro", f"file:{db}?immutable=1",
        f"@{db}", f"~/../..{db}", f"{victim}/backups", "%2e%2e/victim", "..%2fvictim", "VICTIM",
        "Victim", "\uff56ictim", "victim.", "victim ", "victim\n", "victim\x00", "\u202evictim",
        "victim/../victim", "*", "?", "vic*", "victim,victim", "victim:mem-canary", "mem-canary",
        "mem-gone", "of-victim", "latest", ":memory:", "", " ", "\ud800",
        f"'; ATTACH DATABASE '{db}' AS v; SELECT * FROM v.memories; --",
        f"x' UNION SELECT content FROM '{db}' --", '" OR 1=1 --', "content:*", "{content}: *",
        f"$(cat {db})", f"`cat {db}`", f"!include {db}", "{{victim}}", f"[x]({db.as_uri()})",
        f"<!ENTITY x SYSTEM '{db.as_uri()}'>", "sentence-transformers:" + str(victim),
    ]  # fmt: skip


VERBS: dict[str, Callable[[AgentMemory, str], object]] = {
    "store": lambda m, it: m.store(it or "x"),
    "store category": lambda m, it: m.store("x", category=it),
    "store tags": lambda m, it: m.store("x", tags=[it]),
    "store session": lambda m, it: m.store("x", session_id=it),
    "store user": lambda m, it: m.store("x", user_id=it, run_id=it),
    "store id": lambda m, it: m.store("x", id=it),
    "store metadata": lambda m, it: m.store("x", metadata={it: it, "path": it, "agent_id": it}),
    "store timestamp": lambda m, it: m.store("x", timestamp=it),
    "store on_duplicate": lambda m, it: m.store("x", on_duplicate=it),
    "store_many": lambda m, it: m.store_many([{"content": it, "id": it, "session_id": it}]),
    "store_many agent": lambda m, it: m.store_many([{"content": "x", "agent_id": it}]),
    "validate": lambda m, it: m.validate({"content": it, "path": it}),
    "search": lambda m, it: m.search(it, 100, explain=True),
    "search filters": lambda m, it: m.search(QUESTION, filters={"agent_id": it}),
    "search user": lambda m, it: m.search(QUESTION, user_id=it),
    "search session": lambda m, it: m.search(QUESTION, session_id=it, run_id=it),
    "search tags": lambda m, it: m.search(QUESTION, tags=[it], category=it),
    "search custom": lambda m, it: m.search(QUESTION, filters={"custom_filters": {it: {"ne": it}}}),
    "search operator": lambda m, it: m.search(QUESTION, filters={"custom_filters": {"a": {it: 1}}}),
    "search shared": lambda m, it: m.search(QUESTION, shared=[it]),
    "search shared text": lambda m, it: m.search(QUESTION, shared=it),
    "search shared picked": lambda m, it: m.search(
        QUESTION, shared=["victim", it], filters={"agent_id": it}
    ),
    "search as_of": lambda m, it: m.search(QUESTION, as_of=it),
    "search since": lambda m, it: m.search(QUESTION, since=it, until=it),
    "shared": lambda m, it: m.shared(it).list_recent(),
    "get": lambda m, it: m.get(it),
    "get as_of": lambda m, it: m.get(it, as_of="2990-01-01"),
    "list_recent": lambda m, it: m.list_recent(filters={"agent_id": it, "archived": None}),
    "list_recent as_of": lambda m, it: m.list_recent(as_of=it),
    "count": lambda m, it: m.count(filters={"agent_id": it}),
    "history": lambda m, it: m.history(it),
    "update": lambda m, it: m.update(it, content="y"),
    "update fields": lambda m, it: m.update("mem-own", category=it, user_id=it, tags=[it]),
    "update agent": lambda m, it: m.update("mem-own", agent_id=it),  # type: ignore[call-arg]
    "delete": lambda m, it: m.delete(it),
    "delete_many": lambda m, it: m.delete_many([it]),
    "promote": lambda m, it: m.promote(it),
    "demote": lambda m, it: m.demote(it),
    "archive": lambda m, it: m.archive([it]),
    "unarchive": lambda m, it: m.unarchive(it),
    "duplicates": lambda m, it: m.duplicates(it, user_id=it or None),
    "erase": lambda m, it: m.erase([it], backups=True),
    "erase filters": lambda m, it: m.erase(filters={"agent_id": it}, backups=True),
    "reject": lambda m, it: m.reject(it, reason=it),
    "lift": lambda m, it: m.lift(it),
    "holders": lambda m, it: m.holders(it),
    "undo": lambda m, it: m.undo(it),  # type: ignore[arg-type]
    "context": lambda m, it: m.context(config={"exclude_categories": [it]}),
    "configure": lambda m, it: m.configure(categories=[it]),
    "configure sharing": lambda m, it: m.configure(sharing=it),
    "configure model": lambda m, it: m.configure(embedding_model=it),
    "configure retention": lambda m, it: m.configure(retention=it),
    "configure any": lambda m, it: m.configure(**{it: it}),
    "export format": lambda m, it: m.export(m.path.with_name("out"), format=it, overwrite=True),
    "export as_of": lambda m, it: m.export(m.path.with_name("out"), as_of=it, overwrite=True),
    "import format": lambda m, it: m.import_(m.path.with_name("empty"), format=it),
    "agent": lambda m, it: list_of(it, m),
    "agent sanitized": lambda m, it: list_of(sanitize_agent_id(it).replace("victim", "v"), m),
}  # fmt: skip


def list_of(agent_id: str, memory: AgentMemory) -> object:
    """Open an agent of a name that is not the victim's own, and list what it has."""
    if agent_id == "victim":
        return None
    root = memory.path.parent.parent
    with AgentMemory(agent_id, root=root, create=False, read_only=True) as opened:
        return opened.list_recent()


def told(attempt: Callable[[], object]) -> str:
    """Return all that comes of an attempt: its result, or its error with all that it carries."""
    try:
        result = attempt()
    except AgentMemoryError as error:
        faults = error.errors() if isinstance(error, ValidationError) else ""
        causes = [repr(it) for it in (error, error.__cause__, error.__context__) if it]
        return f"{error} {faults} {causes}"
    if isinstance(result, Path) or not hasattr(result, "__iter__"):
        return repr(result)
    return repr(list(result))


@pytest.mark.file_only("the agents have files")
@pytest.mark.parametrize("verb", VERBS)
def test_no_word_that_a_caller_gives_reaches_another_agents_file(
    mallory: AgentMemory, victim: Path, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mallory.path.with_name("empty").touch()
    for text in names_of(victim):
        assert CANARY not in told(lambda name=text: VERBS[verb](mallory, name)), text  # type: ignore[misc]
    assert CANARY not in caplog.text
    assert {it.name for it in victim.parent.iterdir()} == {"mallory", "victim"}


@pytest.mark.usefixtures("victim")
def test_the_words_would_find_what_they_look_for_where_they_may(root: Path) -> None:
    """The verbs do find the canary in the file of the agent that asks: silence proves nothing."""
    with AgentMemory("victim", root=root) as memory:
        assert CANARY in told(lambda: memory.search(QUESTION))
        assert CANARY in told(lambda: VERBS["get"](memory, "mem-canary"))
        assert CANARY in told(lambda: VERBS["history"](memory, "mem-gone"))
        assert CANARY in told(lambda: VERBS["list_recent"](memory, "victim"))
        memory.configure(sharing="read")
    with AgentMemory("mallory", root=root) as mallory:
        assert CANARY in told(lambda: VERBS["shared"](mallory, "victim"))
        assert CANARY in told(lambda: VERBS["search shared"](mallory, "victim"))


@pytest.mark.file_only("the agents have files")
@pytest.mark.usefixtures("mallory")
@pytest.mark.parametrize(
    "words",
    ["store {0}", "store x --session {0}", "store x --user {0} --run {0} --tag {0}", "show {0}",
     "store x --id {0}", "search {0}", "search sings --shared {0}", "search sings --user {0}",
     "search sings --session {0} --run {0}", "search sings --where {0}", "history {0}",
     "recent --category {0}", "update {0} --content y", "forget {0} --yes", "erase {0} --yes",
     "promote {0}", "configure sharing {0}", "configure {0} {0}", "duplicates {0}",
     "reject {0} --yes", "export --format {0}"],
)  # fmt: skip
def test_no_word_of_a_command_does_either(
    root: Path, victim: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    for text in names_of(victim):
        given = [word.format(text) for word in words.split(" ")]
        run(["--root", str(root), "--agent", "mallory", *given])
        said = capsys.readouterr()
        assert CANARY not in said.out + said.err, text


@pytest.mark.parametrize("name", ["../victim", "victim/../victim", "mallory/../victim", "victim\n"])
def test_no_name_of_an_agent_is_a_path(root: Path, victim: Path, name: str) -> None:
    with pytest.raises(ValidationError):
        AgentMemory(name, root=root)
    with pytest.raises(ValidationError):
        AgentMemory("memories", root=victim / name).shared(name)


# Who lets whom read -------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["private", "read", "write"])
def test_what_an_agent_sets_for_itself_opens_no_other(mallory: AgentMemory, sharing: str) -> None:
    mallory.configure(sharing=sharing)
    with pytest.raises(PermissionDenied):
        mallory.shared("victim")
    with pytest.raises(PermissionDenied):
        mallory.search(QUESTION, shared=["victim"])


@pytest.mark.parametrize("form", ["store", "metadata", "sqlite"])
@pytest.mark.parametrize("sharing", ["read", "write"])
def test_no_file_that_is_taken_in_opens_a_store_to_others(
    root: Path, tmp_path: Path, form: str, sharing: str
) -> None:
    """Any file can say that it is of this agent; the setting is for its owner to make."""
    crafted = tmp_path / "crafted"
    with AgentMemory("bob", root=tmp_path / "elsewhere") as source:
        if form != "metadata":
            source.store("harmless")
        source.configure(sharing=sharing, scratchpad_max_size=20)
        source.export(crafted, format=form)
    with AgentMemory("bob", root=root) as memory:
        report = memory.import_(crafted, format=form, on_conflict="replace")
        assert memory.configure().sharing is None
        assert memory.configure().scratchpad_max_size == 20
        assert "settings skipped: sharing" in report.notes
        memory.configure(sharing="private")
        memory.import_(crafted, format=form, on_conflict="newer")
        assert memory.configure().sharing == "private"
        memory.configure(sharing=sharing)
        assert not any("sharing" in it for it in memory.import_(crafted, format=form).notes)


def test_a_file_without_a_name_opens_a_store_no_more(root: Path, tmp_path: Path) -> None:
    crafted = tmp_path / "metadata.json"
    crafted.write_text(json.dumps({"config": {"sharing": "write"}, "stats": {}}))
    with AgentMemory("bob", root=root) as memory:
        memory.import_(crafted, format="metadata", on_conflict="replace")
        assert memory.configure().sharing is None


def test_a_file_may_close_a_store(root: Path, tmp_path: Path) -> None:
    crafted = tmp_path / "metadata.json"
    told_there = {"agent_id": "shared", "config": {"sharing": "private"}, "stats": {}}
    crafted.write_text(json.dumps(told_there))
    with AgentMemory("shared", root=root) as memory:
        memory.import_(crafted)
        assert memory.configure().sharing == "private"


# Paths that stand in a file -----------------------------------------------------------------------


@pytest.mark.file_only("the agents have files")
@pytest.mark.parametrize(
    "name", ["{}/scratchpad.yaml.backup", "../victim/memories.db", "/etc/passwd"]
)
def test_a_path_in_a_file_is_followed_by_nothing(
    mallory: AgentMemory, victim: Path, visitor: Visitor, name: str, tmp_path: Path
) -> None:
    told_there = {"backup_path": name.format(victim), "can_rollback": True}
    planted = json.dumps(told_there)
    visitor(mallory.path, f"UPDATE agent SET migration = '{planted}', storage_backend = 'vector'")
    assert CANARY not in told(mallory.info)
    assert CANARY not in told(mallory.rollback)
    for form in ("metadata", "store", "backup"):
        mallory.export(tmp_path / form, format=form)
        assert CANARY.encode() not in (tmp_path / form).read_bytes()
    with AgentMemory("eve", root=tmp_path / "other") as eve:
        eve.import_(tmp_path / "store")
        assert not eve.rollback()
        assert CANARY not in told(lambda: eve.list_recent(100))


def test_a_move_writes_beside_its_own_file_whatever_a_file_says(
    mallory: AgentMemory, victim: Path, visitor: Visitor, tmp_path: Path
) -> None:
    planted = json.dumps({"backup_path": str(tmp_path / "planted"), "can_rollback": True})
    visitor(mallory.path, f"UPDATE agent SET migration = '{planted}'")
    link = mallory.path.with_name("scratchpad.yaml.backup")
    link.symlink_to(victim / "scratchpad.yaml.backup")
    mallory.migrate(embedder=WordEmbedder())
    assert not (tmp_path / "planted").exists()
    assert link.is_file()
    assert not link.is_symlink()
    assert mallory.rollback()


# Links in an agent's own directory ----------------------------------------------------------------


@pytest.mark.parametrize("make", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["eve", "shared"])
def test_another_agents_file_under_a_name_of_ones_own_is_refused(
    mallory: AgentMemory, root: Path, victim: Path, make: Callable[..., None], name: str
) -> None:
    """A file says whose it is, and is no other agent's by another name."""
    (root / name).mkdir()
    make(victim / "memories.db", root / name / "memories.db")
    try:
        for attempt in (
            lambda: AgentMemory(name, root=root),
            lambda: AgentMemory(name, root=root, read_only=True),
            lambda: mallory.shared(name).list_recent(),
            lambda: mallory.search(QUESTION, shared=[name]),
        ):
            said = told(attempt)
            assert "AgentMemory(" not in said
            assert CANARY not in said
    finally:
        (root / name / "memories.db").unlink()


def test_a_directory_that_is_a_link_is_no_agents(
    mallory: AgentMemory, root: Path, victim: Path
) -> None:
    (root / "eve").symlink_to(victim)
    for attempt in (
        lambda: AgentMemory("eve", root=root),
        lambda: mallory.shared("eve"),
        lambda: mallory.search(QUESTION, shared=["eve"]),
    ):
        with pytest.raises(StorageUnavailable):
            attempt()
    assert [it.agent_id for it in AgentMemory.agents(root)] == ["mallory", "victim"]


def test_the_log_of_another_agent_is_not_read(root: Path, victim: Path) -> None:
    with AgentMemory("eve", root=root) as eve:
        eve.store("one")
    with AgentMemory("victim", root=root) as memory:
        memory.store(f"Another {CANARY}")
        log = victim / "memories.db-wal"
        assert log.stat().st_size > 0
        (root / "eve" / "memories.db-wal").symlink_to(log)
        assert CANARY not in told(lambda: list_of("eve", memory))
        (root / "eve" / "memories.db-wal").unlink()
        assert memory.count() == 2
        assert memory.check().ok


def test_backups_that_are_another_agents_are_not_restored_nor_changed(
    mallory: AgentMemory, victim: Path
) -> None:
    backups = mallory.path.parent / "backups"
    for old in backups.iterdir():
        old.unlink()
    backups.rmdir()
    backups.symlink_to(victim / "backups")
    mallory.store("of the same id", id="mem-canary")
    try:
        listed = mallory.backups()
        assert listed
        assert CANARY not in repr(listed)
        for name in ("latest", Path(listed[0].path).name, listed[0].path):
            with pytest.raises(ValidationError, match="belongs to agent 'victim'"):
                AgentMemory.restore(mallory.path, name)
        assert CANARY not in told(lambda: mallory.erase("mem-canary", backups=True))
        assert mallory.get("mem-canary") is None
    finally:
        backups.unlink()


def test_a_backup_of_another_agent_under_a_name_of_ones_own_is_not_restored(
    mallory: AgentMemory, victim: Path
) -> None:
    planted = mallory.path.parent / "backups" / "memories-20990101T000000000000Z.db"
    os.link(victim / "memories.db", planted)
    mallory.store("of the same id", id="mem-canary")
    try:
        with pytest.raises(ValidationError, match="belongs to agent 'victim'"):
            AgentMemory.restore(mallory.path, "latest")
        assert CANARY not in told(lambda: mallory.erase("mem-canary", backups=True))
        assert mallory.get("mem-canary") is None
    finally:
        planted.unlink()


def test_a_rollback_file_of_another_agent_makes_no_memory(
    mallory: AgentMemory, root: Path, victim: Path
) -> None:
    link = mallory.path.with_name("scratchpad.yaml.backup")
    link.symlink_to(victim / "scratchpad.yaml.backup")
    with pytest.raises(ValidationError, match="belongs to agent 'victim'"):
        AgentMemory.rebuild(root / "eve" / "memories.db", link, agent_id="mallory")
    assert CANARY not in told(lambda: mallory.erase("mem-own", backups=True))
    assert not (root / "eve").exists()


# Copies in the folder of temporary files ----------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    place.chmod(0o1777)  # as /tmp is
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.mark.usefixtures("victim")
def test_nobody_else_can_look_into_a_copy_nor_foretell_its_name(
    root: Path, temporary: Path
) -> None:
    with AgentMemory("victim", root=root) as memory:
        seen = []
        for _ in range(2):
            with memory.dump(as_of="2990-01-01"):
                (folder,) = temporary.iterdir()
                assert stat.S_IMODE(folder.stat().st_mode) == 0o700
                assert all(not stat.S_IMODE(it.stat().st_mode) & 0o077 for it in folder.iterdir())
                seen.append(folder.name)
    assert len(set(seen)) == 2
    assert list(temporary.iterdir()) == []


def test_a_link_among_the_copies_is_not_followed(
    mallory: AgentMemory, victim: Path, temporary: Path
) -> None:
    (temporary / "agent-memory-copy-abcdefgh").symlink_to(victim)
    (temporary / "agent-memory-copy-").mkdir()
    planted = temporary / "agent-memory-copy-" / "in-use"
    planted.symlink_to(victim / "memories.db")
    assert mallory.search(QUESTION, as_of="2990-01-01")
    assert (victim / "memories.db").exists()


# What a person may do -----------------------------------------------------------------------------


def test_a_path_that_a_person_gives_may_be_another_agents(
    root: Path, victim: Path, cli: Callable[..., Any]
) -> None:
    """This is no hole: who runs the command owns both files. No tool of a model may pass a path."""
    done = cli("--agent", "heir", "import", str(victim / "memories.db"))
    assert done.code == 0
    with AgentMemory("heir", root=root) as heir:
        assert CANARY in told(lambda: heir.search(QUESTION))


def test_a_backup_and_an_export_of_one_agent_hold_no_other(
    mallory: AgentMemory, tmp_path: Path
) -> None:
    mallory.backup(tmp_path / "copy.db")
    mallory.export(tmp_path / "folder", format="directory")
    for content in bytes_of(tmp_path).items():
        if content[0].startswith(("copy.db", "folder")):
            assert CANARY.encode() not in content[1]


@pytest.mark.parametrize("few_of", [2, 10**9], ids=["rows first", "words first"])
def test_where_an_owner_has_many_memories_others_words_are_not_hers(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch, few_of: int
) -> None:
    monkeypatch.setattr(keyword_index, "FEW_TEXTS", 0)
    monkeypatch.setattr(keyword_index, "_FEW_OF", few_of)
    memory.store_many(
        {"content": f"the walnut {number}", "user_id": "ann" if number % 4 == 0 else "bob"}
        for number in range(20)
    )
    hits = memory.search("walnut", 50, user_id="ann")
    assert {hit.memory.user_id for hit in hits} == {"ann"}
    assert len(hits) == 5
    engine = engine_of(memory)
    with engine.read():
        terms = [Term("walnut", "walnut")]
        rows = engine.keywords.postings(terms, Equals("user_id", "ann"))
    assert [len(found) for found in rows] == [5]
