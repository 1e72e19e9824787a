"""Fuzz of files that are imported: they are taken in and the store is sound, or nothing changes."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from agent_memory import AgentMemory, ImportReport
from agent_memory.formats import registry as codecs

from . import fuzz_texts as made
from .fuzz_core import Trials, workplace
from .tally import Tally
from .truth import State, disagreements, state_of
from .verbs import NAME, NOW, opened, sentences

_EACH: Final = 150
"""Cases on one store; then another is made, so that it does not grow with them."""
_CHECKED: Final = 3
"""One in so many stores that were changed is looked at whole."""
_YAML: Final = ("store", "scratchpad", "backup", "settings")

Sample = Mapping[str, bytes]
"""The files of an export, by their place in it; that of a file is empty."""


def imported(cases: int, seed: str) -> Tally:
    """Import what was an export once, or never was."""
    trials = Trials("imports", seed)
    dice = trials.random
    with workplace() as folder:
        samples = _samples(dice, folder / "samples")
        (folder / "template").mkdir()
        _fill(folder / "template" / NAME, dice, by_meaning=False)
        while trials.tally.cases < cases:
            place = folder / "store"
            shutil.copytree(folder / "template", place)
            with opened(place / NAME, synchronous="NORMAL") as memory:
                _import_some(trials, memory, samples, cases)
            shutil.rmtree(place)
    return trials.tally


def _import_some(
    trials: Trials, memory: AgentMemory, samples: Mapping[str, Sample], cases: int
) -> None:
    dice = trials.random
    before = state_of(memory.path)
    for _ in range(min(_EACH, cases - trials.tally.cases)):
        name, files = _input(dice, samples)
        source = _placed(memory.path.with_name("input"), files)
        options = _options(dice, name)
        shown = _shown(trials, name, options, files)
        report = trials.run(partial(memory.import_, source, **options), shown)
        after = state_of(memory.path)
        _judge(trials, memory, report, before, after, shown)
        if report and report.refused and not (options["skip_bad"] or options["dry_run"]):
            _refuse_partial(trials, report, shown)
        before = after


def _judge(
    trials: Trials,
    memory: AgentMemory,
    report: ImportReport | None,
    before: State,
    after: State,
    shown: Callable[[], str],
) -> None:
    """Count what is wrong after an import."""
    tally = trials.tally
    is_written = report is not None and not report.dry_run
    if not is_written:
        if before != after:
            tally.half_written += 1
            parts = [name for name in before if before[name] != after[name]]
            tally.note(f"fuzz, imports, changed {parts}, but was refused or dry: {shown()}")
        return
    assert report is not None
    tally.count("files taken in")
    grown = len(after["memories"]) - len(before["memories"])
    if grown != report.new:
        tally.mismatches += 1
        tally.note(f"fuzz, imports, {grown} memories more, {report.new} told: {shown()}")
    kept = {row[0]: row for row in before["memories"]}
    if gone := kept.keys() - {row[0] for row in after["memories"]}:
        tally.lost += len(gone)
        tally.note(f"fuzz, imports, {sorted(gone)[:3]} are gone: {shown()}")
    if before != after and trials.random.randrange(_CHECKED) == 0:
        _look_closely(trials, memory, shown)


def _refuse_partial(trials: Trials, report: ImportReport, shown: Callable[[], str]) -> None:
    """Count it when a part was taken in unasked; of a folder of JSONL files it always is."""
    if not codecs.codec(report.format).skips_bad:
        trials.tally.half_written += 1
        trials.tally.note(f"fuzz, imports, {report.refused} were skipped: {shown()}")


def _look_closely(trials: Trials, memory: AgentMemory, shown: Callable[[], str]) -> None:
    """Check the store, take it to another one, and compare what both say."""
    tally = trials.tally
    tally.count("stores looked at whole")
    wrong = [problem.detail for problem in memory.check().problems]
    wrong += disagreements(memory.path)
    one, other = (memory.path.with_name(name) for name in ("one.yaml", "other.yaml"))
    memory.export(one, overwrite=True)
    with opened(memory.path.with_name("fresh.db"), synchronous="NORMAL") as fresh:
        fresh.import_(one)
        fresh.export(other, overwrite=True)
        wrong += [problem.detail for problem in fresh.check().problems]
    for suffix in ("", "-wal", "-shm"):
        memory.path.with_name(f"fresh.db{suffix}").unlink(missing_ok=True)
    if one.read_bytes() != other.read_bytes():
        wrong.append(f"another export after a round trip: {_first_difference(one, other)}")
    if wrong:
        tally.mismatches += 1
        tally.note(f"fuzz, imports, {wrong[:3]}: {shown()}")


def _first_difference(one: Path, other: Path) -> str:
    pairs = zip(one.read_text().split("\n"), other.read_text().split("\n"), strict=False)
    return next((f"{a!r} and {b!r}" for a, b in pairs if a != b), "its length")


def _shown(trials: Trials, name: str, options: dict[str, Any], files: Sample) -> Callable[[], str]:
    def text() -> str:
        inside = {place or name: data[:200] for place, data in files.items() if len(files) < 3}
        return f"input {trials.tally.cases} of {name}, {options}, {inside}"

    return text


# What is imported -------------------------------------------------------------------------------


def _samples(dice: Random, folder: Path) -> dict[str, Sample]:
    """Export a rich store in every format."""
    folder.mkdir()
    found: dict[str, Sample] = {}
    _fill(folder / "rich.db", dice, by_meaning=True, count=14)
    with opened(folder / "rich.db") as memory:
        for name in codecs.names():
            out = folder / name
            memory.export(out, format=name, embeddings=name == "store")
            found[name] = {"": out.read_bytes()} if out.is_file() else _files(out)
        memory.export(folder / "plain", format="store")
        found["store, no vectors"] = {"": (folder / "plain").read_bytes()}
    return found


def _fill(path: Path, dice: Random, *, by_meaning: bool, count: int = 8) -> None:
    """Make a store that has something of everything."""
    with opened(path, synchronous="NORMAL") as memory:
        memory.store_many(sentences(count))
        memory.store_many([_rich(dice, number) for number in range(count // 2)])
        memory.update("fact-1", content="changed\n  in\n\nlines ", tags=["x"])
        memory.delete("fact-2")
        memory.archive("fact-3")
        memory.promote("fact-4")
        memory.reject("hunter2 was the password", reason="old")
        memory.configure(categories=["incident"], backups_kept=1)
        if by_meaning:
            memory.migrate()
        memory.search("compass")


def _rich(dice: Random, number: int) -> dict[str, Any]:
    return {
        "id": f"rich-{number}",
        "content": made.clean_text(dice)
        + dice.choice(("\n- a\n  b: c", "\t", " #x", ": y", "'\"")),
        "tags": ["数", "yes", "2026-01-01", "a: b"][: dice.randint(0, 4)],
        "kind": "task",
        "importance": "high",
        "timestamp": NOW - timedelta(seconds=number),
        "user_id": dice.choice((None, "ann")),
        "task_metadata": {"status": "blocked", "blockers": ["no"], "outcome": "~"},
        "metadata": {"null": None, "no": [1, 1.5, True, {"x": "1e3"}], "": "\u2028\x7f"},
    }


def _files(folder: Path) -> Sample:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _placed(place: Path, files: Sample) -> Path:
    """Write the input, in place of the one before."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    if "" in files:
        place.write_bytes(files[""])
        return place
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place


def _input(dice: Random, samples: Mapping[str, Sample]) -> tuple[str, Sample]:
    """Return the format that an input was once of, and the input."""
    weights = [1 if name == "sqlite" else 4 for name in samples]
    name = dice.choices(tuple(samples), weights=weights)[0]
    files = samples[name]
    sort = dice.random()
    if sort < 0.05:
        return name, {"": _random_bytes(dice)}
    if sort < 0.1:
        return name, {"": _of_keys(dice, "yaml" if name in _YAML else "json")}
    if "" not in files:
        return name, _mutated_folder(dice, files)
    if sort < 0.3 and (structured := _restructured(dice, name, files[""])) is not None:
        return name, {"": structured}
    if sort < 0.33:
        other = dice.choice([it[""] for it in samples.values() if "" in it])
        cut = dice.randint(0, len(files[""]))
        return name, {"": files[""][:cut] + other[dice.randint(0, len(other)) :]}
    if sort < 0.36:
        return name, files
    return name, {"": made.mutated(dice, files[""])}


def _mutated_folder(dice: Random, files: Sample) -> Sample:
    changed = dict(files)
    for _ in range(dice.choice((1, 1, 2))):
        name = dice.choice(tuple(changed))
        sort = dice.random()
        if sort < 0.8:
            changed[name] = made.mutated(dice, changed[name])
        elif sort < 0.9 and len(changed) > 1:
            del changed[name]
        else:
            changed[dice.choice(("tasks.jsonl", "odd.jsonl", "archive/2025.jsonl"))] = changed[name]
    return changed


def _random_bytes(dice: Random) -> bytes:
    if dice.random() < 0.3:
        return dice.choice((b"", b"SQLite format 3\x00")) + dice.randbytes(
            dice.choice((0, 1, 40, 5000))
        )
    return b"".join(made.token(dice) for _ in range(dice.choice((1, 5, 40))))


def _of_keys(dice: Random, language: str) -> bytes:
    """Return data that has the keys of the formats, with any value."""
    items = [
        {name: _leaf(dice) for name in dice.sample(_KEYS, k=dice.randint(0, 8))}
        for _ in range(dice.choice((0, 1, 3)))
    ]
    if language == "yaml":
        whole = {"format": "agent-memory store", "version": 1, dice.choice(_LISTS): items}
        whole |= {dice.choice(_LISTS): _leaf(dice)} if dice.random() < 0.3 else {}
        return _yaml(whole)
    lines = [json.dumps(item) for item in items]
    return "\n".join(lines).encode() if dice.random() < 0.5 else json.dumps(items).encode()


def _restructured(dice: Random, name: str, data: bytes) -> bytes | None:
    """Read an export, put something else into it at a few places, and write it again."""
    with contextlib.suppress(ValueError, yaml.YAMLError):
        if name.startswith(_YAML):
            return _yaml(_altered(dice, yaml.load(data, Loader=_LOADER)))
        if name.endswith("jsonl"):
            lines = data.rstrip(b"\n").split(b"\n")
            place = dice.randrange(len(lines))
            lines[place] = json.dumps(_altered(dice, json.loads(lines[place]))).encode()
            return b"\n".join(lines)
        return json.dumps(_altered(dice, json.loads(data))).encode()
    return None


def _altered(dice: Random, data: Any) -> Any:
    """Change one place of data, found by going down."""
    if isinstance(data, dict) and data and dice.random() < 0.93:
        key = dice.choice(tuple(data))
        sort = dice.random()
        if sort < 0.85:
            return {**data, key: _altered(dice, data[key])}
        if sort < 0.92:
            return {name: value for name, value in data.items() if name != key}
        return {**data, dice.choice(_KEYS): data[key]}
    if isinstance(data, list) and data and dice.random() < 0.93:
        place = dice.randrange(len(data))
        if dice.random() < 0.15:
            return [*data, data[place]]
        return [*data[:place], _altered(dice, data[place]), *data[place + 1 :]]
    return _leaf(dice)


def _leaf(dice: Random) -> Any:
    """Return data that JSON or YAML can write down."""
    sort = dice.random()
    if sort < 0.3:
        return dice.choice(made.SPECIAL_NUMBERS)
    if sort < 0.6:
        return dice.choice(made.WORDS)
    if sort < 0.75:
        return dice.choice(_GOOD)
    if sort < 0.8:
        return made.letters(dice, dice.choice((1, 200, 10_001)))
    return dice.choice(
        (None, True, False, [], {}, [[]], [None], {"": None}, [1, "x"], {"a": {"b": 1}})
    )


def _yaml(data: Any) -> bytes:
    try:
        text = yaml.dump(data, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can write: YAML reads that too
        text = json.dumps(data)
    return str(text).encode()


def _options(dice: Random, name: str) -> dict[str, Any]:
    sort = dice.random()
    own = name.split(",", maxsplit=1)[0]
    options: dict[str, Any] = {
        "format": None if sort < 0.5 else own if sort < 0.9 else dice.choice(codecs.names()),
        "on_conflict": dice.choice(("skip", "replace", "newer", "keep-both")),
        "skip_bad": dice.random() < 0.4,
        "dry_run": dice.random() < 0.15,
    }
    return options


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_LISTS: Final = (
    "agent", "memories", "scratchpad", "rejections", "models", "vectors", "changes", "odd",
)  # fmt: skip
_KEYS: Final = (
    "id", "content", "category", "tags", "kind", "importance", "memory_type", "timestamp",
    "metadata", "updated_at", "last_accessed", "access_count", "created_by_session", "user_id",
    "run_id", "archived", "task_metadata", "version", "embedding", "agent_id", "config",
    "created_at", "type", "memory", "entry", "custom_metadata", "words_hash", "word_count",
    "model", "dimensions", "vector", "scale", "hash", "event", "at", "old", "new", "session",
    "max_size", "memories", "results", "data", "success", "score", "format",
)  # fmt: skip
_GOOD: Final = (
    "fact-1", "rich-0", "2026-01-28T12:00:00Z", "ADD", "UPDATE", "DELETE", "completed", "core",
    "note", "bob", "stored", "vector", "00" * 32, "AAAA", [0.5] * 32, ["a"],
    {"status": "completed"}, "mem-1",
)  # fmt: skip
