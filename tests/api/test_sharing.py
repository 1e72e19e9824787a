"""Memories of several agents: who may read or write them, and one search over them all."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from embedding_server import WordEmbedder
from reads import contents

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    AgentNotFound,
    ConfigurationError,
    MissingAgentIdentity,
    NotAMemoryFile,
    PermissionDenied,
    StorageClosed,
    StorageCorrupt,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.storage.sqlite.connection import opening

STANDUP = "The daily standup of the platform team is at nine fifteen"
CHOSEN = "Chose PostgreSQL as the database of the billing service after the load test"
QUESTION = "Which database did we choose for the billing service?"


@pytest.fixture
def bob(memory: AgentMemory) -> AgentMemory:
    """Return the memory of the agent that asks."""
    return memory


@pytest.fixture
def agent(root: Path, clock: Clock) -> Callable[..., Path]:
    """Make agents with memories, closed again; return the file of each."""

    def make(name: str, *contents: str, sharing: str | None = None) -> Path:
        with AgentMemory(name, root=root, clock=clock, session_id=f"of {name}") as made:
            made.store_many({"content": content} for content in contents)
            if sharing is not None:
                made.configure(sharing=sharing)
            return made.path

    return make


def state(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file of a directory with its bytes and the time of its last change."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(directory.iterdir())
        if path.is_file()
    }


def set_policy(root: Path, name: str, policy: str | None) -> None:
    with AgentMemory(name, root=root, create=False) as memory:
        memory.configure(sharing=policy)


# Who may -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, "private"])
def test_an_agent_is_private_unless_it_says_otherwise(
    bob: AgentMemory, agent: Callable[..., Path], policy: str | None
) -> None:
    path = agent("team", STANDUP, sharing=policy)
    before = state(path.parent)
    uses: list[Callable[[], object]] = [
        lambda: bob.shared("team"),
        lambda: bob.search("standup", shared=["team"]),
    ]
    for use in uses:
        with pytest.raises(PermissionDenied, match="--agent team configure sharing read") as told:
            use()
        assert "'team'" in str(told.value)
    assert state(path.parent) == before


@pytest.mark.parametrize(
    ("name", "policy"), [("shared", None), ("shared", "read"), ("team", "read")]
)
def test_what_may_be_read_is_searched_and_cannot_be_written(
    bob: AgentMemory, agent: Callable[..., Path], name: str, policy: str | None
) -> None:
    agent(name, STANDUP, sharing=policy)
    (hit,) = bob.search("when is the standup?", shared=[name])
    assert (hit.memory.content, hit.memory.agent_id) == (STANDUP, name)
    with pytest.raises(StorageReadOnly, match="read_only"):
        bob.shared(name).store("not mine to say")
    assert contents(bob.search("what is not mine to say", shared=[name])) == []


def test_shared_can_be_private_too(bob: AgentMemory, agent: Callable[..., Path]) -> None:
    agent("shared", STANDUP, sharing="private")
    with pytest.raises(PermissionDenied, match="'shared'"):
        bob.search("standup", shared="shared")


def test_what_may_be_written_takes_memories_of_the_one_that_asks(
    bob: AgentMemory, root: Path, agent: Callable[..., Path], clock: Clock
) -> None:
    agent("team", sharing="write")
    clock.forward(days=1)
    stored = bob.shared("team").store(STANDUP)
    assert contents(bob.search("standup", shared=["team"])) == [STANDUP]
    with AgentMemory("team", root=root, clock=clock) as team:
        there = team.get(stored)
    assert there is not None
    assert (there.created_by_session, there.timestamp) == ("session-1", clock.now)
    assert bob.count() == 0


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bob", ValidationError),
        ("../team", ValidationError),
        ("..", ValidationError),
        ("team/memories.db", ValidationError),
        ("team\n", ValidationError),
        ("nobody", AgentNotFound),
        ("linked", StorageUnavailable),
        ("linked-file", StorageUnavailable),
        ("a-directory", StorageUnavailable),
        ("a-file", StorageUnavailable),
        ("impostor", ConfigurationError),
        ("", MissingAgentIdentity),
    ],
)
def test_a_name_that_is_no_other_agents_is_refused(
    bob: AgentMemory, root: Path, tmp_path: Path, agent: Callable[..., Path], name: str, error: type
) -> None:
    team = agent("team", STANDUP, sharing="read")
    (tmp_path / "outside").mkdir()
    shutil.copy(team, tmp_path / "outside" / "memories.db")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "linked-file").mkdir()
    (root / "linked-file" / "memories.db").symlink_to(tmp_path / "outside" / "memories.db")
    (root / "a-directory" / "memories.db").mkdir(parents=True)
    (root / "a-file").write_text("no directory")
    (root / "impostor").mkdir()
    shutil.copy(team, root / "impostor" / "memories.db")
    before = sorted(root.rglob("*"))
    with pytest.raises(error) as told:
        bob.shared(name)
    assert name.strip() in str(told.value)
    with pytest.raises(error):
        bob.search("standup", shared=["team", name])
    after = [path for path in sorted(root.rglob("*")) if path.parent != team.parent]
    assert after == [path for path in before if path.parent != team.parent]


@pytest.mark.parametrize("names", [3, {"team": 1}, [3], [["team"]], [None]])
def test_what_is_no_list_of_names_is_refused(bob: AgentMemory, names: Any) -> None:
    with pytest.raises(ValidationError, match="shared: must be a list of agent ids"):
        bob.search("standup", shared=names)


def test_a_file_that_lies_under_no_root_has_no_others_beside_it(
    root: Path, tmp_path: Path, agent: Callable[..., Path]
) -> None:
    team = agent("team", STANDUP, sharing="read")
    for place in (tmp_path / "copy.db", tmp_path / "elsewhere" / "memories.db"):
        with (
            AgentMemory.open(place, agent_id="bob") as memory,
            pytest.raises(ConfigurationError, match="is not under a root directory") as told,
        ):
            memory.search("standup", shared=["team"])
        assert str(place) in str(told.value)
    with AgentMemory.open(root / "bob" / "memories.db", agent_id="bob") as memory:
        assert contents(memory.search("standup", shared=["team"])) == [STANDUP]
        assert memory.shared("team").path == team


# While it goes on ----------------------------------------------------------------------------


def test_what_is_allowed_is_asked_anew_at_each_use(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", STANDUP, sharing="read")
    reading = bob.shared("team")
    assert bob.shared("team") is reading

    set_policy(root, "team", "write")
    writing = bob.shared("team")
    writing.store("The platform team writes its runbooks in Markdown")
    with pytest.raises(StorageClosed):
        reading.search("standup")

    set_policy(root, "team", "private")
    with pytest.raises(PermissionDenied, match="private"):
        bob.search("runbooks", shared=["team"])
    with pytest.raises(StorageClosed):
        writing.store("too late")

    set_policy(root, "team", "read")
    assert len(bob.search("what does the platform team do?", shared=["team"])) == 2
    with pytest.raises(StorageReadOnly, match="read_only"):
        bob.shared("team").store("too late")


NO_USE = {
    "check_destination", "close", "embedding_usage", "id_prefix", "location", "path", "session",
    "shared",
}  # fmt: skip
"""What of a memory tells nothing that it holds, and changes nothing in it."""
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "add": ([{"role": "user", "content": "I live in Oslo"}],),
    "approve": (1,),
    "archive": ("mem-1",),
    "delete": ("mem-1",),
    "delete_many": (["mem-1"],),
    "demote": ("mem-1",),
    "decide": (),
    "dismiss": (1,),
    "duplicates": (STANDUP,),
    "erase": ("mem-1",),
    "export": ("export.yaml",),
    "get": ("mem-1",),
    "holders": ("standup",),
    "import_": ("lines.jsonl",),
    "lift": (1,),
    "merge": ("mem-1", ["mem-2"]),
    "move_to": ("elsewhere",),
    "promote": ("mem-1",),
    "reject": ("standup",),
    "search": ("standup",),
    "store": ("too late",),
    "store_many": ([{"content": "too late"}],),
    "unarchive": ("mem-1",),
    "under_review": ("mem-1",),
    "update": ("mem-1",),
    "validate": ({"content": "too late"},),
}


def uses_of(memory: AgentMemory) -> dict[str, Callable[[], object]]:
    """Return a use of each public name of a memory, but of those of ``NO_USE``."""

    def use(name: str) -> object:
        value = memory.graph.entities if name == "graph" else getattr(memory, name)
        result = value(*ARGUMENTS.get(name, ())) if callable(value) else value
        if isinstance(result, AbstractContextManager):
            with result:
                return None
        return next(result, None) if isinstance(result, Iterator) else result

    own = {name for name in dir(AgentMemory) if not name.startswith("_")} - NO_USE
    of_class = (classmethod, staticmethod)
    uses = {
        name: partial(use, name)
        for name in own
        if not isinstance(inspect.getattr_static(AgentMemory, name), of_class)
    }
    return {
        **uses,
        "delete_all": partial(memory.delete_all, user_id="ann"),
        "follow_events": lambda: next(memory.follow_events(until=lambda: True), None),
        "reset": partial(memory.reset, confirm="team"),
    }


def refusal_of(use: Callable[[], object]) -> str:
    try:
        use()
    except AgentMemoryError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return "it was not refused"


def test_who_holds_a_memory_is_refused_every_use_of_it_once_it_is_private(
    bob: AgentMemory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.jsonl").write_text('{"content": "too late"}')
    with AgentMemory("team", root=root) as team:
        team.store(STANDUP)
        team.configure(sharing="write")
    held = bob.shared("team")
    uses: dict[str, Callable[[], object]] = {
        **uses_of(held),
        "the graph of a run": partial(held.graph.within_run("r").entities),
        "a session": partial(held.session({"user_id": "ann"}).search, "standup"),
    }
    assert len(held.search("standup")) == 1
    set_policy(root, "team", "private")
    refusals = {name: refusal_of(use) for name, use in uses.items()}
    expected = refusal_of(lambda: bob.shared("team"))
    assert expected.startswith("PermissionDenied: the memories of agent 'team' are private")
    assert {name: refusal for name, refusal in refusals.items() if refusal != expected} == {}


def test_who_follows_a_memory_is_told_no_more_once_it_is_private(
    bob: AgentMemory, root: Path
) -> None:
    with AgentMemory("team", root=root) as team:
        team.configure(sharing="read", event_log="full")
        coming = bob.shared("team").follow_events()
        team.store(STANDUP)
        assert next(coming).name == "memory:stored"
        team.configure(sharing="private")
        team.store("for the team alone")
        with pytest.raises(PermissionDenied, match="are private"):
            next(coming)


@pytest.mark.parametrize("verb", ["events", "duplicate_groups"])
def test_what_is_being_told_of_a_memory_ends_once_it_is_private(
    bob: AgentMemory, root: Path, verb: str
) -> None:
    with AgentMemory("team", root=root) as team:
        team.configure(sharing="read", event_log="full")
        for content in (STANDUP, "Lunch is at noon"):
            team.store(content)
            team.store(content, on_duplicate="keep")
        list(team.duplicate_groups())
        told = getattr(bob.shared("team"), verb)()
        assert next(told) is not None
        team.configure(sharing="private")
        with pytest.raises(PermissionDenied, match="are private"):
            next(told)


def test_who_holds_a_memory_writes_it_no_more_once_it_may_only_be_read(
    bob: AgentMemory, root: Path
) -> None:
    with AgentMemory("team", root=root) as team:
        team.store(STANDUP)
        team.configure(sharing="write")
    writing = bob.shared("team")
    set_policy(root, "team", "read")
    with pytest.raises(
        PermissionDenied, match=r"open them again, to read, with `shared\('team'\)`"
    ):
        writing.store("too late")
    set_policy(root, "team", "write")
    assert writing.store("in time again")
    set_policy(root, "team", "read")
    reading = bob.shared("team")
    set_policy(root, "team", "write")
    assert len(reading.list_recent()) == 2


def test_one_that_its_user_closed_is_opened_again(
    bob: AgentMemory, agent: Callable[..., Path]
) -> None:
    agent("team", STANDUP, sharing="write")
    with bob.shared("team") as team:
        team.store("The platform team writes its runbooks in Markdown")
    assert len(bob.search("what does the platform team do?", shared=["team"])) == 2
    with bob.shared("team") as team:
        assert team.count() == 2


def test_another_file_in_its_place_is_noticed(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", STANDUP, sharing="read")
    assert contents(bob.search("standup", shared=["team"])) == [STANDUP]
    shutil.rmtree(root / "team")
    with pytest.raises(AgentNotFound, match="no agent 'team'"):
        bob.search("standup", shared=["team"])
    agent("team", "The standup was moved to ten", sharing="read")
    assert contents(bob.search("standup", shared=["team"])) == ["The standup was moved to ten"]
    shutil.rmtree(root / "team")
    agent("team", STANDUP, sharing="private")
    with pytest.raises(PermissionDenied):
        bob.search("standup", shared=["team"])


def test_closing_closes_them_all(root: Path, agent: Callable[..., Path]) -> None:
    agent("team", STANDUP, sharing="write")
    agent("shared", CHOSEN)
    with AgentMemory("bob", root=root) as bob:
        assert len(bob.search("the standup of billing", shared=["team", "shared"])) == 2
        team, shared = bob.shared("team"), bob.shared("shared")
    bob.close()
    for one in (team, shared):
        with pytest.raises(StorageClosed):
            one.count()
    with pytest.raises(StorageClosed):
        bob.shared("team")
    for name in ("team", "shared"):
        assert [path.name for path in (root / name).iterdir()] == ["memories.db"]


@pytest.fixture
def often_switching() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("often_switching")
@pytest.mark.parametrize("waits", [True, False])
def test_what_threads_ask_for_at_once_is_closed_with_the_memory(
    root: Path, agent: Callable[..., Path], waits: bool
) -> None:
    agent("team", STANDUP, sharing="read")
    for turn in range(30):
        bob, opened = AgentMemory("bob", root=root), list[AgentMemory]()
        together = threading.Barrier(4)

        def ask(bob: AgentMemory, opened: list[AgentMemory], together: threading.Barrier) -> None:
            together.wait()
            with suppress(StorageClosed):
                opened.append(bob.shared("team"))

        threads = [threading.Thread(target=ask, args=(bob, opened, together)) for _ in range(3)]
        for thread in threads:
            thread.start()
        together.wait()
        if waits:
            for thread in threads:
                thread.join()
        else:
            time.sleep(turn / 30_000)
        bob.close()
        for thread in threads:
            thread.join()
        assert opened or not waits
        for team in opened:
            with pytest.raises(StorageClosed):
                team.count()


def test_threads_search_while_what_is_allowed_changes(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", STANDUP, sharing="read")
    bob.store("The standup of bob alone is in the evening")
    found: list[int] = []
    failures: list[BaseException] = []
    is_over = threading.Event()

    def search() -> None:
        try:
            while not is_over.is_set():
                results = bob.search("standup", shared=["team"])
                assert results.search_metadata.degraded == []
                found.append(len(results))
        except BaseException as error:  # noqa: BLE001 - a thread's error is shown by the test
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    with AgentMemory("team", root=root) as team:
        for turn in range(20):
            team.configure(sharing=("write", "read")[turn % 2])
            bob.shared("team")
    is_over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(found) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_searches_them_too(bob: AgentMemory, agent: Callable[..., Path]) -> None:
    agent("team", STANDUP, sharing="write")
    assert contents(bob.search("standup", shared=["team"])) == [STANDUP]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            bob.shared("team").store("The child was at the standup")
            code = 0 if len(bob.search("standup", shared=["team"])) == 2 else 2
            bob.close()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(bob.search("standup", shared=["team"])) == 2


# One order ------------------------------------------------------------------------------------


def test_the_best_of_a_weak_memory_does_not_outrank_a_good_answer(
    bob: AgentMemory, agent: Callable[..., Path], clock: Clock
) -> None:
    weak = "The service desk answers questions about billing"
    bob.store(CHOSEN)
    bob.store("The billing service sends invoices at night")
    clock.forward(days=60)
    agent("team", weak, "Lunch is at noon", sharing="read")
    # Alone, each has a best answer, and A's formula puts the new one of little worth first.
    own, others = bob.search(QUESTION)[0], bob.shared("team").search(QUESTION)[0]
    assert (own.memory.content, others.memory.content) == (CHOSEN, weak)
    assert own.passed_gate
    assert others.passed_gate
    assert others.relevance_score > own.relevance_score

    results = bob.search(QUESTION, shared=["team"], explain=True)
    assert results[0].memory.content == CHOSEN
    assert results[0].passed_gate
    (there,) = [hit for hit in results if hit.memory.content == weak]
    assert not there.passed_gate
    assert there.similarity == others.similarity
    best = max(hit.similarity for hit in results)
    for hit in results:
        assert hit.score is not None
        assert hit.score.relative * hit.score.strength == pytest.approx(hit.similarity)
        assert hit.score.relative == pytest.approx(hit.similarity / best)
        assert hit.passed_gate == (hit.score.relative >= hit.score.gate)


def test_of_what_is_below_the_floor_everywhere_none_passes(
    bob: AgentMemory, agent: Callable[..., Path]
) -> None:
    bob.store_many({"content": f"walnut {number}"} for number in range(40))
    agent("team", *(f"walnut number {number}" for number in range(40)), sharing="read")
    question = f"walnut {' '.join(f'word{number}' for number in range(40))}"
    results = bob.search(question, 100, shared=["team"], similarity_threshold=0.0)
    assert {hit.memory.agent_id for hit in results} == {"bob", "team"}
    assert not any(hit.passed_gate for hit in results)


def test_it_does_not_matter_whose_the_good_answer_is(
    bob: AgentMemory, agent: Callable[..., Path], clock: Clock
) -> None:
    agent("team", CHOSEN, "The billing service sends invoices at night", sharing="read")
    clock.forward(days=60)
    bob.store("The service desk answers questions about billing")
    results = bob.search(QUESTION, shared=["team"])
    assert (results[0].memory.agent_id, results[0].passed_gate) == ("team", True)
    assert [hit.passed_gate for hit in results if hit.memory.agent_id == "bob"] == [False]
    assert all(hit.score is None for hit in results)


def test_of_answers_that_are_as_good_the_newer_comes_first(
    bob: AgentMemory, agent: Callable[..., Path], clock: Clock
) -> None:
    bob.store("The deploy of the billing service is on Monday")
    clock.forward(days=20)
    agent("team", "The deploy of the billing service is on Friday", sharing="read")
    results = bob.search("when is the deploy of the billing service?", shared=["team"])
    assert [hit.memory.agent_id for hit in results] == ["team", "bob"]
    assert all(hit.passed_gate for hit in results)
    assert results[0].similarity == results[1].similarity


def test_asked_for_several_things_a_memory_keeps_its_order(
    bob: AgentMemory, agent: Callable[..., Path], clock: Clock
) -> None:
    for day, text in [
        ("monday", "Ann has read the book Emma"),
        ("monday", "Ann has read the book Ulysses twice"),
        ("tuesday", "Ann has read the book Middlemarch again, in March"),
    ]:
        bob.store(text, session_id=day, timestamp=clock.now)
    agent("team", STANDUP, sharing="read")
    question = "Which books has Ann read?"
    alone = bob.search(question, count_accesses=False)
    assert [hit.memory.created_by_session for hit in alone] == ["monday", "tuesday", "monday"]
    assert contents(bob.search(question, shared=["team"])) == contents(alone)


IN_ENGLISH = {"datenbank": "database", "rechnung": "invoices"}


def test_meaning_is_searched_with_the_embedder_of_the_one_that_asks_and_keeps_its_places(
    root: Path, clock: Clock
) -> None:
    embedder = WordEmbedder(english=IN_ENGLISH, similarity_floor=0.65)
    lunches = [
        f"Peter had his {dish} for lunch with a friend from the sales team"
        for dish in ("soup", "rice", "fish", "pasta", "salad")
    ]
    nearest = "Anna keeps the invoices in a database"
    others = [f"word{place} is beside word{place + 1}" for place in range(60)]
    query = "lunch friend datenbank rechnung ordner"
    with AgentMemory("team", root=root, clock=clock, embedder=embedder) as team:
        team.configure(sharing="read")
        team.store_many({"content": it, "session_id": it} for it in (*lunches, nearest, *others))
        team.migrate()
        alone = team.search(query, explain=True, count_accesses=False)
    kept = [hit.memory.content for hit in alone if hit.score and hit.score.has_kept_place]
    assert kept == [nearest]
    with AgentMemory("bob", root=root, clock=clock, embedder=embedder) as bob:
        results = bob.search(query, shared=["team"], explain=True)
        assert [hit.model_dump() for hit in results] == [hit.model_dump() for hit in alone]
        assert results.search_metadata.backend == "vector"
        # Where another knows more of it, there is no need of a kept place.
        bob.store("At lunch with a friend: datenbank, rechnung, ordner")
        results = bob.search(query, shared=["team"])
    assert results[0].memory.agent_id == "bob"
    similarities = [hit.similarity for hit in results]
    assert similarities == sorted(similarities, reverse=True)


def test_as_many_as_were_asked_for_come_back_from_all_together(
    bob: AgentMemory, agent: Callable[..., Path]
) -> None:
    ways = "rope bridge ferry tunnel road cable".split()
    for name in ("team", "shared"):
        agent(name, *(f"{name} crosses the river by {way}" for way in ways), sharing="read")
    bob.store_many({"content": f"bob crosses the river by {way}"} for way in ways)
    for limit in (1, 4, 18):
        results = bob.search(
            "who crosses the river?", shared=["team", "shared", "team"], limit=limit
        )
        assert len({hit.memory.id for hit in results}) == len(results) == limit
        assert results.search_metadata.reason is None
        assert results.search_metadata.near_misses == []
        assert results.total_count == 18
    results = bob.search("who crosses the river?", shared=["team", "shared"], limit=20)
    assert len(results) == 18
    assert results.search_metadata.reason == "few_matches"
    assert {hit.memory.agent_id for hit in results} == {"bob", "team", "shared"}


# The same, said twice -------------------------------------------------------------------------


def test_what_several_say_takes_one_place(bob: AgentMemory, agent: Callable[..., Path]) -> None:
    own = bob.store(STANDUP)
    agent("team", f"{STANDUP}.", "The standup takes ten minutes", sharing="read")
    agent("shared", STANDUP.upper())
    results = bob.search("when is the daily standup?", shared=["team", "shared"], limit=2)
    assert len(results) == 2
    said = {
        f"{name}:{hit.memory.id}"
        for name in ("team", "shared")
        for hit in bob.shared(name).search("daily standup platform", count_accesses=False)
        if "platform" in hit.memory.content.lower()
    }
    assert len(said) == 2
    whose = results[0].memory
    assert whose.id == own
    assert set(results[0].repeats) == said
    assert results[1].memory.content == "The standup takes ten minutes"
    assert results[1].repeats == []


def test_what_may_be_out_of_date_for_one_is_marked_in_the_copy_of_another(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", sharing="read")
    with AgentMemory("team", root=root) as team:
        for content in ("I live in Oslo.", "I moved to Bergen."):
            team.add(content)
    bob.store("I live in Oslo.")
    hits = bob.search("where do I live in Oslo", shared=["team"])
    marks = {hit.memory.content: (hit.memory.agent_id, hit.under_review) for hit in hits}
    assert marks["I live in Oslo."] == ("bob", True)
    assert marks["I moved to Bergen."] == ("team", False)


def test_the_copies_that_another_agent_has_of_its_copy_are_named_too(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", sharing="read")
    with AgentMemory("team", root=root) as team:
        theirs = {team.store(STANDUP, on_duplicate="keep") for _ in range(3)}
    mine = {bob.store(STANDUP, on_duplicate="keep") for _ in range(2)}
    (hit,) = bob.search("daily standup", shared=["team"])
    named = {f"bob:{one}" for one in mine} | {f"team:{one}" for one in theirs}
    assert {one if ":" in one else f"bob:{one}" for one in [hit.memory.id, *hit.repeats]} == named


def test_the_same_words_about_two_users_are_two_memories(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", sharing="read")
    with AgentMemory("team", root=root) as team:
        team.store("Takes the tea without milk", user_id="ana")
    bob.store("Takes the tea without milk", user_id="tom")
    results = bob.search("who takes tea without milk?", shared=["team"])
    assert sorted(hit.memory.user_id or "" for hit in results) == ["ana", "tom"]
    bob.store("Takes the tea without milk", user_id="ana", run_id="2")
    bob.store("Takes the tea without milk", user_id="ana", run_id="3")
    results = bob.search("who takes tea without milk?", shared=["team"])
    # Those of one memory stay apart, as they are without the other.
    assert sorted(hit.memory.user_id or "" for hit in results) == ["ana", "ana", "tom"]
    assert [hit.memory.user_id for hit in results if hit.repeats] == ["ana"]
    assert sum(len(hit.repeats) for hit in results) == 1


# The same question for all --------------------------------------------------------------------


def test_filters_and_thresholds_hold_for_all(
    bob: AgentMemory, root: Path, agent: Callable[..., Path]
) -> None:
    agent("team", CHOSEN, sharing="read")
    with AgentMemory("team", root=root) as team:
        team.store("PostgreSQL is preferred for new services", category="preference", tags=["db"])
    bob.store("PostgreSQL is liked by bob", category="preference", tags=["db"])
    bob.store("PostgreSQL was updated", category="note")
    results = bob.search(
        "postgresql", shared="team", filters={"category": "preference", "tags": ["db"]}
    )
    assert {(hit.memory.agent_id, hit.memory.category) for hit in results} == {
        ("bob", "preference"),
        ("team", "preference"),
    }
    applied = results.search_metadata.filters_applied
    assert applied == {"category": "preference", "tags": ["db"], "shared": ["team"]}
    everything = bob.search("which postgresql is preferred?", shared=["team"])
    threshold = everything[0].similarity
    strict = bob.search(
        "which postgresql is preferred?", shared=["team"], similarity_threshold=threshold
    )
    assert [hit.memory.id for hit in strict] == [everything[0].memory.id]
    assert strict.search_metadata.reason == "few_matches"
    assert "team: " in (strict.search_metadata.explanation or "")
    assert any(miss.memory_id.startswith("team:") for miss in strict.search_metadata.near_misses)
    assert all(miss.score is None for miss in strict.search_metadata.near_misses)


@pytest.mark.parametrize("whose", ["bob", "team", "shared", "nobody"])
def test_a_filter_for_an_agent_picks_its_memories(
    bob: AgentMemory, agent: Callable[..., Path], whose: str
) -> None:
    agent("team", STANDUP, sharing="read")
    agent("shared", "No standup on holidays")
    bob.store("Skipped the standup")
    results = bob.search("standup", shared=["team", "shared"], filters={"agent_id": whose})
    assert {hit.memory.agent_id for hit in results} == {whose} - {"nobody"}
    assert results.search_metadata.reason == ("no_match" if whose == "nobody" else "few_matches")
    # The others are not even asked.
    explanation = results.search_metadata.explanation or ""
    assert explanation.startswith(f"{whose}: ") == (whose in {"team", "shared"})
    assert "; " not in explanation


def test_nothing_anywhere_is_explained_for_each(
    bob: AgentMemory, agent: Callable[..., Path]
) -> None:
    agent("team", STANDUP, sharing="read")
    results = bob.search("zebra", shared=["team"])
    assert list(results) == []
    assert results.search_metadata.reason == "nothing_stored"
    explanation = results.search_metadata.explanation or ""
    assert explanation.startswith("this agent has no memories yet; team: no memory contains")
    assert bob.search("  ", shared=["team"]).search_metadata.reason == "empty_query"


# What is counted ------------------------------------------------------------------------------


def test_only_what_was_given_out_is_counted_and_only_where_it_may_be(
    bob: AgentMemory, root: Path, agent: Callable[..., Path], clock: Clock
) -> None:
    ways = "rope bridge ferry".split()
    agent("team", *(f"team crosses the river by {way}" for way in ways), sharing="write")
    agent("shared", *(f"shared crosses the river by {way}" for way in ways))
    bob.store_many({"content": f"bob crosses the river by {way}"} for way in ways)
    results = bob.search(
        "who crosses the river by rope, bridge or ferry?", shared=["team", "shared"]
    )
    given = {hit.memory.id for hit in results if hit.passed_gate}
    whose = {hit.memory.agent_id for hit in results if hit.passed_gate}
    assert len(given) == 5
    assert len(whose) > 1
    bob.search("who crosses the river by rope?", shared=["team", "shared"], count_accesses=False)
    for one in (bob, bob.shared("team")):
        one.info()  # writes what searches counted
    counted: set[str] = set()
    for name in ("bob", "team", "shared"):
        with AgentMemory(name, root=root, clock=clock, read_only=True) as one:
            found = {it.id for it in one.list_recent(10) if it.access_count}
            assert all(it.access_count in (0, 1) for it in one.list_recent(10))
            assert one.info().stats.total_queries == (0 if name == "shared" else 2)
        assert name != "shared" or not found
        counted |= found
    assert counted == {
        hit.memory.id for hit in results if hit.passed_gate and hit.memory.agent_id != "shared"
    }


def test_one_that_another_agents_copy_stands_for_was_given_out_too(
    bob: AgentMemory, agent: Callable[..., Path], clock: Clock
) -> None:
    own = bob.store(STANDUP)
    clock.forward(days=2)
    agent("team", STANDUP, sharing="read")
    (hit,) = bob.search("daily standup", shared=["team"])
    assert (hit.memory.agent_id, hit.repeats) == ("team", [f"bob:{own}"])
    assert bob.store(STANDUP) == own  # an echo
    found = bob.get(own)
    assert found is not None
    assert found.access_count == 1


def test_what_was_not_given_out_is_no_echo_when_it_is_stored(
    bob: AgentMemory, agent: Callable[..., Path]
) -> None:
    weak = "The service desk answers questions about billing"
    bob.store(weak)
    agent("team", CHOSEN, sharing="read")
    (hit,) = bob.search(QUESTION, 1, shared=["team"])
    assert hit.memory.content == CHOSEN
    bob.store(weak)  # which bob was not shown: so this is news, not an echo
    assert bob.count() == 2
    assert weak in contents(bob.search(QUESTION, 2, shared=["team"]))
    bob.store(weak)
    assert bob.count() == 2


def test_what_may_only_be_read_is_never_written(
    root: Path, agent: Callable[..., Path], clock: Clock
) -> None:
    path = agent("team", STANDUP, CHOSEN, sharing="read")  # on PostgreSQL this skips the test
    bob = AgentMemory("bob", root=root, clock=clock)
    before = state(path.parent)
    for _ in range(50):
        clock.forward(minutes=1)
        assert bob.search("when is the standup?", shared=["team"])[0].memory.content == STANDUP
        assert bob.shared("team").search("billing database")[0].memory.content == CHOSEN
    bob.shared("team").context()
    bob.close()
    assert state(path.parent) == before


@pytest.fixture
def sealed(agent: Callable[..., Path]) -> Iterator[Path]:
    """Give an agent to be read in a directory that nobody, root included, can write into."""
    directory = agent("team", STANDUP, sharing="read").parent
    mount = shutil.which("mount")
    if os.geteuid() == 0:
        ways = [["--bind", str(directory), str(directory)], ["-o", "remount,ro,bind"]]
        for way in ways:
            words = way if "--bind" in way else [*way, str(directory)]
            if mount is None or subprocess.run([mount, *words], capture_output=True).returncode:
                pytest.skip("root can write everywhere, and cannot mount")
        yield directory
        subprocess.run(["umount", str(directory)], check=True)
    else:
        directory.chmod(0o500)
        yield directory
        directory.chmod(0o700)


def test_a_directory_that_cannot_be_written_keeps_no_search_from_its_answers(
    root: Path, sealed: Path
) -> None:
    bob = AgentMemory("bob", root=root)
    bob.store("Skipped the standup")
    before = state(sealed)
    results = bob.search("standup", shared=["team"])
    found = {hit.memory.agent_id for hit in results}
    degraded = results.search_metadata.degraded
    assert "bob" in found
    # SQLite reads a file with a log of its own only where it may make that log.
    assert ("team" in found) != any(one.startswith("team: was not searched") for one in degraded)
    bob.close()
    assert state(sealed) == before


# One that cannot be read now ------------------------------------------------------------------


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (damage, StorageCorrupt),
        (lambda path: path.write_bytes(b"garbage" * 4096), NotAMemoryFile),
        (lambda path: path.write_bytes(b""), NotAMemoryFile),
    ],
)
def test_a_damaged_one_is_left_out_and_named_until_it_is_mended(
    bob: AgentMemory,
    agent: Callable[..., Path],
    spoil: Callable[[Path], None],
    error: type[AgentMemoryError],
) -> None:
    path = agent("team", STANDUP, sharing="read")
    agent("shared", "No standup on holidays")
    bob.store("Skipped the standup")
    whole = path.read_bytes()
    spoil(path)
    for _ in range(2):
        results = bob.search("standup", shared=["team", "shared"])
        assert {hit.memory.agent_id for hit in results} == {"bob", "shared"}
        (told,) = results.search_metadata.degraded
        assert told.startswith("team: not searched: ")
        assert str(path) in told
    with pytest.raises(error):
        bob.shared("team")
    path.write_bytes(whole)
    results = bob.search("standup", shared=["team", "shared"])
    assert {hit.memory.agent_id for hit in results} == {"bob", "shared", "team"}
    assert results.search_metadata.degraded == []


LOCK = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.isolation_level = None
c.execute("PRAGMA locking_mode = EXCLUSIVE")
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
"""


def test_one_that_another_program_keeps_to_itself_is_left_out_and_named(
    bob: AgentMemory, agent: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.1)
    path = agent("team", STANDUP, sharing="read")
    bob.store("Skipped the standup")
    words = [sys.executable, "-c", LOCK, str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        results = bob.search("standup", shared=["team"])
        assert contents(results) == ["Skipped the standup"]
        (told,) = results.search_metadata.degraded
        assert told.startswith(f"team: not searched: {path} is held by another process")
        with pytest.raises(StorageLocked):
            bob.shared("team")
        holder.communicate("\n", timeout=30)
    assert len(bob.search("standup", shared=["team"])) == 2


def test_settings_that_cannot_be_read_allow_nothing(
    bob: AgentMemory, agent: Callable[..., Path], visitor: Callable[[Path, str], str]
) -> None:
    path = agent("team", STANDUP, sharing="read")
    assert len(bob.search("standup", shared=["team"])) == 1
    visitor(path, """UPDATE agent SET config = '{"sharing": "everybody"}'""")
    with pytest.raises(ConfigurationError, match=r"settings in .* are invalid"):
        bob.search("standup", shared=["team"])
    visitor(path, """UPDATE agent SET config = '{"sharing": "private"}'""")
    with pytest.raises(PermissionDenied):
        bob.search("standup", shared=["team"])
