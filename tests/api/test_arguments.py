"""Arguments that cannot be: each a ``ValidationError`` that names it, and nothing was done."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import Cli

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MemoryGraph,
    MemoryReader,
    SessionGraph,
    SessionMemory,
    ValidationError,
    render_memories,
)

Call = Callable[[AgentMemory, Any], object]
"""A verb, called with one value."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with a file to import."""
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"content": "comes from a file"}\n')


def stored(memory: AgentMemory) -> str:
    """Return all that a memory holds, as text."""
    memory.export("all.yaml", overwrite=True)
    return Path("all.yaml").read_text("utf-8")


def of_ann(memory: AgentMemory) -> SessionMemory:
    return memory.session({"user_id": "ann"})


def assert_refused(memory: AgentMemory, call: Call, values: list[Any], name: str) -> None:
    """Assert that a call with each value is refused for that argument, and leaves all as it was."""
    before = stored(memory)
    for value in values:
        with pytest.raises(ValidationError) as caught:
            call(memory, value)
        assert [error["loc"] for error in caught.value.errors()] == [(name,)], value
        assert stored(memory) == before, value


FLAGS = [
    (kind, name, parameter.name)
    for kind in (AgentMemory, MemoryGraph, SessionMemory, SessionGraph, MemoryReader)
    for name, verb in inspect.getmembers(kind, callable)
    if not name.startswith("_")
    for parameter in inspect.signature(verb).parameters.values()
    if str(parameter.annotation) in ("bool", "bool | None")
    and (kind, name) != (AgentMemory, "open")
]
"""Each flag of each verb; of ``AgentMemory.open`` see ``OPTIONS``."""


def test_the_flags_are_found() -> None:
    assert (AgentMemory, "import_", "dry_run") in FLAGS
    assert (AgentMemory, "restore", "keep_replaced") in FLAGS
    assert (MemoryGraph, "add", "exclusive") in FLAGS
    assert (MemoryReader, "open", "by_keyword") in FLAGS
    assert len(FLAGS) >= 30


@pytest.mark.parametrize(("kind", "name", "flag"), FLAGS)
def test_what_is_neither_true_nor_false_does_nothing(
    memory: AgentMemory, tmp_path: Path, kind: type, name: str, flag: str
) -> None:
    values: list[Any] = ["", "no", [], 5, 0.5]
    if flag != "exclusive":  # of which None leaves it to the relationship
        values.append(None)
    AgentMemory("eve", root=tmp_path / "of-reader").close()
    with cast("MemoryReader", MemoryReader.open("eve", root=tmp_path / "of-reader")) as reader:
        objects = (memory, memory.graph, of_ann(memory), of_ann(memory).graph, reader)
        verb = getattr(next(each for each in objects if type(each) is kind), name)
        needed = [
            parameter
            for parameter in inspect.signature(verb).parameters.values()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ]
        memory.store("Bob drinks tea", id="kept")
        by_name = {each.name: None for each in needed if each.kind is each.KEYWORD_ONLY}
        others = [None] * (len(needed) - len(by_name))

        def call(_memory: AgentMemory, value: object) -> object:
            return verb(*others, **{**by_name, flag: value})

        assert_refused(memory, call, values, flag)


class Themed(AgentMemory):
    """A user's own class, whose methods are its own affair."""

    async def painted(self, *, shade: bool | str = False) -> bool | str:
        return shade


def test_the_methods_of_a_users_subclass_are_left_as_they_are(root: Path) -> None:
    assert inspect.iscoroutinefunction(Themed.painted)
    with Themed("bob", root=root, embedder=None) as memory:
        assert asyncio.run(memory.painted(shade="red")) == "red"
        with pytest.raises(ValidationError, match="dry_run: must be True or False"):
            memory.import_("in.jsonl", dry_run=cast("bool", None))


@pytest.mark.parametrize("value", [True, 1])
def test_1_is_true(memory: AgentMemory, value: bool) -> None:
    assert memory.import_("in.jsonl", dry_run=value).dry_run
    assert memory.count() == 0


CALLS: dict[str, tuple[str, list[Any], Call]] = {
    "merge": ("keep", [[], ["kept", "other"], None, 5], lambda m, it: m.merge(it, ["other"])),
    "of_memory": ("memory_id", [[], None, b"x"], lambda m, it: m.graph.of_memory(it)),
    "list_recent": ("after", [[], 5, b"x"], lambda m, it: m.list_recent(after=it)),
    "apply": ("updates", [{}, None], lambda m, it: m.graph.apply(it)),
    "apply in a session": ("updates", [{}, None], lambda m, it: of_ann(m).graph.apply(it)),
    "validate": ("item", ["x", None, 5], lambda m, it: m.validate(it)),
    "validate in a session": ("item", ["x", None, 5], lambda m, it: of_ann(m).validate(it)),
    "store_many": ("items", [None, 5, "x", {}], lambda m, it: m.store_many(it)),
    "store_many in a session": (
        "items",
        [None, 5, "x", {}],
        lambda m, it: of_ann(m).store_many(it),
    ),
    "decide": ("approve", [None, 5, "12", {}], lambda m, it: m.decide(approve=it)),
    "decide, dismiss": ("dismiss", [None, 5, "12"], lambda m, it: m.decide(dismiss=it)),
    "under_review": ("memory_ids", [None, 5, [5]], lambda m, it: m.under_review(it)),
    "context": (
        "count_tokens",
        ["x", 5, lambda _: None, lambda _: "7", lambda _: -1, lambda _: float("nan")],
        lambda m, it: m.context(count_tokens=it),
    ),
    "render_memories": (
        "count_tokens",
        [5, lambda _: None, lambda _: -1],
        lambda m, it: render_memories(m.list_recent(), count_tokens=it),
    ),
    "add_entity": ("aliases", [None, 5, "x"], lambda m, it: m.graph.add_entity("A", aliases=it)),
    "entities": (
        "after",
        [b"x", float("nan"), 5, "a\ud800", "a\x00", "nobody"],
        lambda m, it: m.graph.entities(after=it),
    ),
    "graph.export": (
        "format",
        [[], None, {}, "x"],
        lambda m, it: m.graph.export("graph", format=it),
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_argument_is_refused_by_its_name(memory: AgentMemory, call: str) -> None:
    memory.store("Bob drinks tea", id="kept")
    memory.store("Bob has a cat", id="other")
    name, values, verb = CALLS[call]
    assert_refused(memory, verb, values, name)


OPTIONS: dict[str, list[Any]] = {
    "read_only": [None, "", "no", 5],
    "create": [None, "", "no", 5],
    "event_text": [None, "", "no", 5],
    "secret_scanner": [5, "x", len],
    "clock": [None, "x", 5],
    "on_event": [5, "x"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in OPTIONS.items() for v in vs])
def test_an_option_that_cannot_be_makes_no_file(tmp_path: Path, name: Any, value: Any) -> None:
    with pytest.raises(ValidationError, match=f"^{name}: must be") as caught:
        AgentMemory("bob", root=tmp_path / "new", **{name: value})
    assert [error["loc"] for error in caught.value.errors()] == [(name,)]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("value", [None, "", "no"], ids=repr)
def test_a_reader_is_read_only_or_not(tmp_path: Path, value: Any) -> None:
    AgentMemory("bob", root=tmp_path).close()
    with pytest.raises(ValidationError, match="read_only: must be True or False"):
        MemoryReader.open("bob", root=tmp_path, read_only=value)


def test_a_clock_must_return_a_time_that_has_one_in_utc(tmp_path: Path) -> None:
    before_all = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(ConfigurationError, match="the clock returned an unusable time"):
        AgentMemory("bob", root=tmp_path, clock=lambda: before_all)


def test_a_clock_must_return_an_aware_time(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the clock must return an aware time"):
        AgentMemory("bob", root=tmp_path, clock=datetime.now)


def test_a_home_that_is_not_known_is_named() -> None:
    for make in (AgentMemory.agents, lambda root: AgentMemory("bob", root=root)):
        with pytest.raises(ValidationError, match=r"^path: no home .*'~nobody-ever/x': set HOME"):
            make("~nobody-ever/x")
    assert [path.name for path in Path.cwd().iterdir()] == ["in.jsonl"]


def test_an_open_memory_stays_in_its_process(memory: AgentMemory) -> None:
    for held in (memory, memory.session({"user_id": "ann"})):
        for send in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match=r"^AgentMemory\('bob'.* open the memory again"):
                send(held)


@pytest.mark.usefixtures("as_bob")
def test_a_command_that_is_told_the_root_needs_no_home(cli: Cli) -> None:
    ran = cli("store", "the kettle is blue", env={"HOME": "~nobody-ever"})
    assert (ran.code, ran.err) == (0, "")


def test_an_unknown_field_is_refused_with_those_that_there_are(memory: AgentMemory) -> None:
    memory_id = memory.store("Ann likes tea")
    calls: list[Callable[[], object]] = [
        lambda: memory.search("tea", filters=cast("Any", {"status": "blocked"})),
        lambda: memory.update(memory_id, tag=["x"]),  # type: ignore[call-arg]
        lambda: memory.store_many([{"content": "x", "tag": "y"}]),
        lambda: memory.session({"user": "ann"}),
    ]
    for call, field in zip(calls, ("task_status", "tags", "tags", "user_id"), strict=True):
        with pytest.raises(ValidationError, match=rf"not permitted: the fields are .*\b{field}\b"):
            call()


@pytest.mark.parametrize("verb", ["get", "delete", "update"])
def test_a_hit_or_a_memory_is_no_id(memory: AgentMemory, verb: str) -> None:
    memory.store("Ann likes tea")
    (hit,) = memory.search("tea")
    assert_refused(memory, lambda m, value: getattr(m, verb)(value), [hit, hit.memory], "memory_id")
