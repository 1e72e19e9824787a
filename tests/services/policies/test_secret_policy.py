"""Secrets in what is stored, changed and imported: warned of, masked, refused; found again."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_secrets import ALNUM, chars, tokens

from agent_memory import (
    AgentMemory,
    FoundSecrets,
    MemoryStorage,
    OnSecret,
    SecretFound,
    SecretScanner,
    ValidationError,
)

TOKENS = tokens("store")
SECRET = TOKENS["github classic"]
WORD = chars("pass", ALNUM, 10) + "!9k"
MASK = "[masked: GitHub token]"
FOUND = "GitHub token in content"


def raw(memory: AgentMemory) -> bytes:
    """Return all bytes of a store's folder: the file, its log, backups."""
    return b"".join(it.read_bytes() for it in memory.path.parent.rglob("*") if it.is_file())


@pytest.fixture
def masking(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("eve", root=root, clock=clock, session_id="session-1") as opened:
        opened.configure(on_secret="mask")
        yield opened
        assert opened.check().problems == []


@pytest.fixture
def refusing(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("max", root=root, clock=clock, session_id="session-1") as opened:
        opened.configure(on_secret="refuse")
        yield opened
        assert opened.check().problems == []


# Warned of --------------------------------------------------------------------------------------


def test_a_secret_is_stored_as_it_is_and_warned_of(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    content = f"Ben's token is {SECRET}"
    memory_id = memory.store(content)
    found = memory.get(memory_id)
    assert found is not None
    assert found.content == content
    assert [it.getMessage() for it in caplog.records] == [
        f"memory {memory_id} seems to contain a secret ({FOUND}): stored as it is"
    ]


def test_what_has_no_secret_is_not_spoken_of(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.store("the password policy requires 12 characters", metadata={"token": "budget"})
    assert caplog.records == []
    assert memory.secrets() == []


def test_a_list_is_warned_of_by_the_ids_that_it_got(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    items = [{"content": "no"}, *({"content": f"{n}: {SECRET}"} for n in range(30))]
    ids = memory.store_many(items)
    said = [it.getMessage() for it in caplog.records]
    assert len(said) == 21
    assert ids[1] in said[0]
    assert said[-1].startswith("10 more")
    assert SECRET not in caplog.text


def test_a_setting_of_keep_looks_for_nothing(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.configure(on_secret="keep")
    memory.store(SECRET)
    assert caplog.records == []


def test_a_function_is_told_and_decides(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[FoundSecrets] = []

    def decide(found: FoundSecrets) -> str | None:
        heard.append(found)
        return ["mask", None, "keep"][len(heard) - 1]

    items = [{"content": f"{n}: {SECRET}", "id": f"m{n}"} for n in range(3)]
    memory.store_many(items, on_secret=decide)
    assert [(it.memory_id, it.index, it.decision) for it in heard] == [
        (f"m{n}", n, OnSecret.WARN) for n in range(3)
    ]
    contents = [one.content for one in (memory.get(f"m{n}") for n in range(3)) if one]
    assert contents == [f"0: {MASK}", f"1: {SECRET}", f"2: {SECRET}"]
    assert caplog.records == []


@pytest.mark.parametrize("word", ["hide", 1, lambda _: "hide"])
def test_another_word_is_refused(memory: AgentMemory, word: Any) -> None:
    with pytest.raises(ValidationError, match="on_secret"):
        memory.store(SECRET, on_secret=word)
    assert memory.count() == 0


def test_another_setting_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(ValidationError, match="on_secret"):
        memory.configure(on_secret="hide")


# Masked -----------------------------------------------------------------------------------------


def test_every_field_is_masked_before_anything_is_written(masking: AgentMemory) -> None:
    memory_id = masking.store(
        f"use {SECRET}, password: {WORD}",
        tags=[TOKENS["npm"], "db"],
        metadata={"db": {"password": WORD, "port": 1}, "urls": [f"a://u:{WORD}@h"]},
        task_metadata={"status": "completed", "outcome": TOKENS["jwt"]},
        kind="task",
    )
    found = masking.get(memory_id)
    assert found is not None
    assert found.content == f"use {MASK}, password: [masked: password]"
    assert found.tags == ["[masked: npm token]", "db"]
    assert found.metadata == {
        "db": {"password": "[masked: password]", "port": 1},
        "urls": ["a://u:[masked: password in an address]@h"],
    }
    assert found.task_metadata is not None
    assert found.task_metadata.outcome == "[masked: JSON web token]"
    bytes_there = raw(masking)
    for secret in (SECRET, WORD, TOKENS["npm"], TOKENS["npm"].lower(), TOKENS["jwt"]):
        assert secret.encode() not in bytes_there


def test_the_same_secret_again_is_the_same_memory(masking: AgentMemory) -> None:
    first = masking.store(f"use {SECRET}", id="m1")
    assert masking.store(f"use {SECRET}", id="m1") == first
    assert masking.store(f"use {SECRET}", on_duplicate="merge", metadata={"k": SECRET}) == first
    assert [it.memory_id for it in masking.duplicates(f"use {SECRET}")] == [first]
    assert SECRET.encode() not in raw(masking)


def test_a_change_is_masked(masking: AgentMemory, caplog: pytest.LogCaptureFixture) -> None:
    memory_id = masking.store("use the vault")
    changed = masking.update(memory_id, content=f"use {SECRET}", metadata={"a": [SECRET]})
    assert (changed.content, changed.metadata) == (f"use {MASK}", {"a": [MASK]})
    assert SECRET.encode() not in raw(masking)
    assert [it.getMessage() for it in caplog.records] == [
        f"memory {memory_id}: masked GitHub token in content, metadata.a"
    ]


def test_the_word_of_a_call_goes_before_the_setting(masking: AgentMemory) -> None:
    kept = masking.get(masking.store(f"use {SECRET}", on_secret="keep"))
    assert kept is not None
    assert kept.content == f"use {SECRET}"


def test_the_asynchronous_face_masks_too(root: Path) -> None:
    async def stored() -> str:
        async with MemoryStorage("ann", root=root) as storage:
            memory_id = await storage.store(f"use {SECRET}", [TOKENS["aws id"]])
            found = await storage.get(memory_id)
            assert found is not None
            return f"{found.content} {found.tags}"

    with AgentMemory("ann", root=root) as memory:
        memory.configure(on_secret="mask")
    assert asyncio.run(stored()) == f"use {MASK} ['[masked: aws access key]']"


AROUND = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@pytest.mark.file_only("its stores are files")
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_byte_of_a_token_reaches_the_disk_or_the_log(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Mask or refuse tokens in random texts by every verb; look at the raw bytes and the log."""
    names = data.draw(st.lists(st.sampled_from(sorted(TOKENS)), min_size=1, max_size=3))
    secrets = [TOKENS[name] for name in names]
    text = "".join(f"{data.draw(AROUND)} {secret}\n" for secret in secrets) + data.draw(AROUND)
    word = data.draw(st.sampled_from(["mask", "refuse"]))
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    folder = tmp_path_factory.mktemp("store")
    try:
        with AgentMemory.open(folder / "memories.db") as memory:
            memory.configure(on_secret=word)
            memory.store("plain", id="m0")
            source = folder.parent / f"{folder.name}.jsonl"
            source.write_text(json.dumps({"id": "m1", "content": text, "metadata": {"k": [text]}}))
            for verb in (
                lambda: memory.store(text, metadata={"nested": {text: text}}),
                lambda: memory.store_many([{"content": text}, {"content": "x", "tags": ["y"]}]),
                lambda: memory.update("m0", content=text),
                lambda: memory.import_(source),
                lambda: memory.validate({"content": text}),
            ):
                try:
                    verb()
                except ValidationError as error:
                    said += [str(error), repr(error.errors()), repr(error.__context__)]
                    assert word == "refuse"
            assert memory.secrets() == []
            there = raw(memory) + "".join(said).encode()
        there += b"".join(it.read_bytes() for it in folder.rglob("*") if it.is_file())
    finally:
        logging.getLogger().removeHandler(handler)
        shutil.rmtree(folder)
    for secret in secrets:
        assert secret.encode() not in there


# Refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("content", {"content": f"use {SECRET}"}),
        ("tags", {"content": "x", "tags": [SECRET[:45]]}),
        ("metadata.a", {"content": "x", "metadata": {"a": SECRET}}),
        ("metadata.a.password", {"content": "x", "metadata": {"a": {"password": WORD}}}),
        ("task_metadata.blockers", {
            "content": "x",
            "task_metadata": {"status": "blocked", "blockers": [SECRET]},
        }),
    ],
)  # fmt: skip
def test_a_secret_is_refused_and_nothing_is_stored(
    refusing: AgentMemory, field: str, values: dict[str, Any]
) -> None:
    refusing.store("there", id="m0")
    for verb in (
        lambda: refusing.store(**values),
        lambda: refusing.store_many([{"content": "fine"}, values]),
        lambda: refusing.update("m0", **values),
        lambda: refusing.validate(values),
    ):
        with pytest.raises(SecretFound) as caught:
            verb()
        (fault,) = caught.value.errors()
        assert (fault["type"], fault["input"], fault["loc"][-1]) == ("secret", field, field)
        assert field in str(caught.value)
        assert SECRET[:45] not in f"{caught.value} {fault}"
        assert WORD not in f"{caught.value} {fault}"
    assert refusing.count() == 1
    assert SECRET[:45].encode() not in raw(refusing)


def test_a_list_says_which_items_are_refused(refusing: AgentMemory) -> None:
    items = [{"content": "fine"}, {"content": SECRET}, {"content": TOKENS["npm"]}]
    with pytest.raises(SecretFound, match=r"2 of 3 memories are invalid; the first: 1\.content"):
        refusing.store_many(items)
    assert refusing.count() == 0


def test_the_call_of_one_may_refuse_where_others_do_not(memory: AgentMemory) -> None:
    with pytest.raises(SecretFound):
        memory.store(SECRET, on_secret="refuse")
    assert memory.count() == 0


# Taken in ---------------------------------------------------------------------------------------


def export_with_secrets(memory: AgentMemory, place: Path) -> Path:
    """Write out a store that holds secrets: now, in its history, in tags and metadata."""
    memory.store(f"use {SECRET}", id="m1", tags=[TOKENS["npm"]], metadata={"password": WORD})
    memory.store("plain", id="m2")
    memory.store(f"old: {TOKENS['jwt']}", id="m3")
    memory.update("m3", content="gone")
    memory.store(f"dead: {TOKENS['google']}", id="m4")
    memory.delete("m4")
    memory.export(place)
    return place


def test_a_store_with_secrets_round_trips_byte_for_byte(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    first = export_with_secrets(memory, tmp_path / "first.yaml")
    with AgentMemory.open(tmp_path / "copy" / "x.db", agent_id="bob", clock=clock) as copy:
        report = copy.import_(first)
        copy.export(tmp_path / "second.yaml")
    assert (tmp_path / "second.yaml").read_bytes() == first.read_bytes()
    (note,) = report.notes
    assert note.startswith("3 memories seem to contain secrets: m1 (GitHub token, npm token, ")
    assert SECRET not in note


def test_an_import_is_warned_of_once(
    memory: AgentMemory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = export_with_secrets(memory, tmp_path / "first.yaml")
    caplog.clear()
    memory.import_(source, dry_run=True)
    assert caplog.records == []
    memory.import_(source)
    (record,) = caplog.records
    assert "m1 (GitHub token" in record.getMessage()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("format", ["store", "jsonl", "json", "backup", "directory", "sqlite"])
def test_an_import_is_masked_entry_by_entry(
    memory: AgentMemory, masking: AgentMemory, tmp_path: Path, format: str
) -> None:
    export_with_secrets(memory, tmp_path / "first.yaml")
    memory.export(tmp_path / "source", format=format)
    report = masking.import_(tmp_path / "source")
    assert report.refused == 0
    assert any("masked GitHub token" in it.message for it in report.repairs)
    found = masking.get("m1")
    assert found is not None
    assert (found.content, found.metadata["password"]) == (f"use {MASK}", "[masked: password]")
    there = raw(masking) + report.model_dump_json().encode()
    for secret in (SECRET, WORD, TOKENS["jwt"], TOKENS["google"], TOKENS["npm"].lower()):
        assert secret.encode() not in there
    assert masking.secrets() == []
    again = masking.import_(tmp_path / "source")
    assert (again.new, again.kept) == (0, 0)


def test_an_import_is_refused_like_any_other_fault(
    memory: AgentMemory, refusing: AgentMemory, tmp_path: Path
) -> None:
    source = export_with_secrets(memory, tmp_path / "first.yaml")
    with pytest.raises(ValidationError, match="GitHub token") as caught:
        refusing.import_(source)
    assert refusing.count() == 0
    report = refusing.import_(source, skip_bad=True)
    assert {it.id for it in refusing.list_recent()} == {"m2", "m3"}
    shown = f"{caught.value} {caught.value.errors()} {report}"
    for secret in (SECRET, WORD, TOKENS["jwt"], TOKENS["google"]):
        assert secret not in shown
        assert secret.encode() not in raw(refusing)


@pytest.mark.parametrize("agent_id", ["bob", "eve"])
def test_a_file_does_not_change_what_is_done_with_secrets(
    memory: AgentMemory, tmp_path: Path, agent_id: str
) -> None:
    memory.configure(on_secret="keep")
    source = export_with_secrets(memory, tmp_path / "first.yaml")
    with AgentMemory.open(tmp_path / "new" / "x.db", agent_id=agent_id) as new:
        new.configure(on_secret="mask")
        report = new.import_(source, on_conflict="replace")
        assert new.configure().on_secret == "mask"
        assert SECRET.encode() not in raw(new)
    assert any("on_secret" in note for note in report.notes)


def test_a_file_of_another_agent_sets_nothing_of_it(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(on_secret="keep")
    memory.store("plain")
    memory.export(tmp_path / "bob.yaml")
    with AgentMemory.open(tmp_path / "new" / "x.db", agent_id="eve") as new:
        new.import_(tmp_path / "bob.yaml")
        assert new.configure().on_secret == "warn"


def test_a_setting_goes_with_its_own_store(memory: AgentMemory, tmp_path: Path) -> None:
    memory.configure(on_secret="mask")
    memory.store("plain")
    memory.export(tmp_path / "bob.yaml")
    with AgentMemory.open(tmp_path / "new" / "x.db", agent_id="bob") as new:
        new.import_(tmp_path / "bob.yaml")
        assert new.configure().on_secret == "mask"


# Found again ------------------------------------------------------------------------------------


def test_what_holds_a_secret_is_found_now_and_in_the_history(memory: AgentMemory) -> None:
    memory.store(f"use {SECRET}", id="m1", metadata={"password": WORD})
    memory.store("plain", id="m2")
    memory.store(SECRET, id="m3")
    memory.update("m3", content="gone")
    memory.store(TOKENS["npm"], id="m4")
    memory.archive("m4")
    memory.store(TOKENS["google"], id="m5")
    memory.delete("m5")
    found = [(it.memory_id, it.kinds, it.fields) for it in memory.secrets()]
    assert found == [
        ("m1", ["GitHub token", "password"], ["content", "metadata.password"]),
        ("m4", ["npm token"], ["content"]),
        ("m3", ["GitHub token"], ["history"]),
        ("m5", ["Google key"], ["history"]),
    ]
    assert SECRET not in str(memory.secrets())
    memory.erase([it.memory_id for it in memory.secrets()])
    assert memory.secrets() == []


def test_what_another_program_wrote_is_looked_at_too(memory: AgentMemory, visitor: Any) -> None:
    memory.store("plain", id="m1")
    metadata = json.dumps({"token": f"{SECRET}"})
    visitor(memory.path, f"UPDATE memories SET metadata = '{metadata}'")
    assert [it.fields for it in memory.secrets()] == [["metadata.token"]]
    visitor(memory.path, f"UPDATE memories SET content = CAST(x'ff' AS TEXT) || ' {SECRET}'")
    assert [it.fields for it in memory.secrets()] == [["content", "metadata.token"]]
    visitor(memory.path, "UPDATE memories SET metadata = '{}', content = 'plain'")
    assert [it.fields for it in memory.secrets()] == [["history"]]
    visitor(memory.path, f'UPDATE memories SET metadata = \'{{"token": "{SECRET}", "n": 9e999}}\'')
    assert [it.fields for it in memory.secrets()] == [["metadata.token"]]
    assert memory.check(repair=True).ok  # of what is not UTF-8, and of the infinite number


# A scanner of one's own -------------------------------------------------------------------------


class Birds:
    """Takes the names of birds for secrets, one of them twice, and nothing else."""

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        for bird in ("heron", "kestrel", "kestrel"):
            if (start := text.find(bird)) >= 0:
                yield start, start + len(bird), "bird"


def test_a_scanner_of_ones_own_is_used_instead(root: Path) -> None:
    assert isinstance(Birds(), SecretScanner)
    with AgentMemory("bob", root=root, secret_scanner=Birds()) as memory:
        memory.configure(on_secret="mask")
        memory_id = memory.store(f"a heron and a kestrel, {SECRET}", tags=["heron"])
        found = memory.get(memory_id)
        assert found is not None
        assert found.content == f"a [masked: bird] and a [masked: bird], {SECRET}"
        assert found.tags == ["[masked: bird]"]
        assert memory.secrets() == []
    with AgentMemory("bob", root=root) as memory:
        assert [it.memory_id for it in memory.secrets()] == [memory_id]


def test_what_a_scanner_raises_comes_out_and_nothing_is_stored(root: Path) -> None:
    class Broken:
        def find(self, text: str) -> Iterator[tuple[int, int, str]]:
            raise RuntimeError(f"out of order after {len(text)} characters")

    with AgentMemory("bob", root=root, secret_scanner=Broken()) as memory:
        with pytest.raises(RuntimeError, match="out of order"):
            memory.store("x")
        assert memory.count() == 0
