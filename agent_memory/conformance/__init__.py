"""Tests the library's promises on this machine and disk: ``python -m agent_memory.conformance``.

Everything happens in a new folder, which is removed afterwards: existing memories are not touched.
The tests are real: processes are killed, a file size limit stands in for a full disk, Python's own
SQLite writes to the file. Power cuts are simulated from what SQLite asked of the disk: see
``power_cut``. With ``--synchronous NORMAL``, which does not wait for the disk, that promise must
break.

``EmbedderContract`` has the requirements of an embedder as pytest tests to inherit,
``engine_contract.EngineContract`` those of an engine (importing it needs pytest).
"""

from __future__ import annotations

import functools
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import click

from agent_memory import AgentMemory, __version__, memory_root
from agent_memory.conformance.embedder_contract import EmbedderContract as EmbedderContract
from agent_memory.conformance.power_cut import text_of

_WRITER: Final = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    for number in range(int(sys.argv[3])):
        text = f"{sys.argv[2]}: note {number}"
        memory.store(text)
        print(text, flush=True)
"""
"""Stores notes, and acknowledges each on standard output. Arguments: file, name, how many."""
_FULL_DISK: Final = """
import os, resource, signal, sys
from agent_memory import AgentMemory, StorageFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with AgentMemory.open(sys.argv[1], create=False) as memory:
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = os.path.getsize(sys.argv[1]) + 1_000_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        for number in range(5_000):
            text = f"full disk: note {number} " + "word " * 400
            memory.store(text)
            print(text, flush=True)
    except StorageFull:
        memory.search("note")
        memory.list_recent(10)
    else:
        sys.exit("no limit was felt")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    memory.store("room again")
    print("room again", flush=True)
"""
"""Stores notes until files may no longer grow, reads, and stores again when they may."""
_CUT: Final = "from agent_memory.conformance.power_cut import main; main()"
_PLAIN_SQLITE: Final = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as connection:
    connection.execute("INSERT INTO memories (content) VALUES ('the ferry leaves at dawn')")
    print(connection.execute("PRAGMA quick_check").fetchone()[0])
"""
_ANSWERS: Final = {
    "which database do new services use?": "New services use PostgreSQL 17 as their database.",
    "who reviews the payment code?": "Payment code is reviewed by Mara before it is merged.",
    "when are backups made?": "Backups of the orders table are made every night at two.",
    "why was the cache removed?": "The cache was removed because stale prices were shown.",
    "what port does staging listen on?": "Staging listens on port 8443 behind the proxy.",
    "how do we name branches?": "Branches are named after the ticket, such as ab-512-export.",
    "what does Jonas drink?": "Jonas drinks green tea and never coffee.",
    "where is the offsite in spring?": "The spring offsite is in Ghent, near the station.",
    "which linter runs before commits?": "Before each commit the linter ruff runs over all files.",
    "what broke the deployment?": "The deployment broke on a missing environment variable.",
    "how long do tokens live?": "Access tokens live for fifteen minutes, then expire.",
    "who owns the billing service?": "The billing service is owned by the Lisbon team.",
    "what is Priya allergic to?": "Priya is allergic to peanuts and to shellfish.",
    "when is the release frozen?": "The release is frozen on the last Thursday of each month.",
    "which font do the reports use?": "Reports use the font Source Serif in eleven points.",
    "how are passwords hashed?": "Passwords are hashed with argon2id, never with bcrypt.",
    "what does the customer in Oslo want?": "The customer in Oslo wants invoices in Norwegian.",
    "why are tests slow?": "The tests are slow since each of them starts a browser.",
    "which queue carries emails?": "Emails are carried by a queue of their own in Redis.",
    "what did the audit find?": "The audit found two accounts without a second factor.",
}
"""Questions, and the memory that answers each."""
_LEAST_RECALL: Final = 0.9
_SLOWEST_SEARCH_MS: Final = 100.0
_ERASED_WORD: Final = "quillibrand"


class PromiseBroken(AssertionError):
    """A promise was broken; the message says what was observed."""


class NotTried(Exception):
    """A promise cannot be tested here; the message says why."""


class Outcome(NamedTuple):
    """The outcome for a promise: ``seconds`` it took, ``detail`` what was done or observed."""

    name: str
    promise: str
    state: Literal["held", "broken", "not tried"]
    seconds: float
    detail: str


class Promise(NamedTuple):
    """A promise of the library, and a function that tests it in an empty folder.

    ``attempt`` takes the folder and the amount of work (1 for a full run, less for a short one). It
    returns what it did, and raises ``PromiseBroken`` or ``NotTried``.
    """

    name: str
    text: str
    attempt: Callable[[Path, float], str]


# The promises -------------------------------------------------------------------------------


def survive_kills(folder: Path, share: float, *, writer: str = _WRITER) -> str:
    """Kill a process at random moments while it stores; what it acknowledged must be stored."""
    path = _new_file(folder)
    dice = random.Random(1)
    acknowledged: list[str] = []
    rounds = max(4, round(40 * share))
    for number in range(rounds):
        with _start(writer, path, f"round {number}", "100000") as process:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            first = process.stdout.readline()
            time.sleep(dice.uniform(0.0, 0.3))
            process.kill()
            rest = process.stdout.read()  # `communicate` would miss what `readline` read ahead
        lines = (first + rest).split("\n")[:-1]  # the last line is incomplete, or empty
        if not lines:
            raise PromiseBroken(f"a writer stored nothing in round {number}")
        acknowledged += lines
    _expect_all_there(path, acknowledged)
    return f"{rounds} kills, {len(acknowledged):,} memories acknowledged, all there"


def survive_power_cuts(
    folder: Path, share: float, *, synchronous: str = "FULL", writer: str = _CUT
) -> str:
    """Cut the power while a process stores; what it acknowledged must have reached the disk."""
    path = _new_file(folder)
    count = max(8, round(80 * share))
    looked_for = 0
    with _start(writer, path, str(count), synchronous) as process:
        assert process.stdout is not None and process.stdin is not None  # noqa: S101, PT018
        for number, line in enumerate(process.stdout, 1):
            cut = json.loads(line)
            texts = [text_of(place) for place in range(cut["acknowledged"])]
            try:
                _expect_all_there(Path(cut["folder"]) / path.name, texts)
            except PromiseBroken as broken:
                process.kill()
                raise PromiseBroken(f"after cut {number}: {broken}") from None
            looked_for += len(texts)
            shutil.rmtree(cut["folder"])
            process.stdin.write("\n")
            process.stdin.flush()
        _, errors = process.communicate()
    if process.returncode != 0:
        raise PromiseBroken(f"a writer failed: {errors.strip()[-300:]}")
    return f"{count} cuts, {looked_for:,} acknowledged memories looked for, all there"


def share_a_file(folder: Path, share: float, *, writer: str = _WRITER) -> str:
    """Let several processes store to one file at once: none is refused, and none loses anything."""
    path = _new_file(folder)
    each = max(20, round(150 * share))
    writers = [_start(writer, path, f"writer {number}", str(each)) for number in range(4)]
    outputs = [process.communicate() for process in writers]
    for process, (_, errors) in zip(writers, outputs, strict=True):
        if process.returncode != 0:
            raise PromiseBroken(f"a writer failed: {errors.strip()[-300:]}")
    acknowledged = [line for output, _ in outputs for line in output.splitlines()]
    if len(acknowledged) != 4 * each:
        raise PromiseBroken(f"{len(acknowledged)} of {4 * each} were acknowledged")
    _expect_all_there(path, acknowledged)
    return f"4 processes stored {each} memories each, all there"


def survive_a_full_disk(folder: Path, _: float) -> str:
    """Stop all files from growing: this is reported as such, reads still work, nothing is lost."""
    if os.name != "posix":
        raise NotTried("this system has no limit for the size of files")
    path = _new_file(folder)
    process = _start(_FULL_DISK, path)
    output, errors = process.communicate()
    if process.returncode != 0:
        raise PromiseBroken(errors.strip()[-300:])
    _expect_all_there(path, output.splitlines())
    return f"a limit of file size after {len(output.splitlines()) - 1} memories, then room again"


def come_back_from_an_export(folder: Path, _: float) -> str:
    """Export, import into a new file, and export again: the same bytes."""
    first, second = folder / "first.yaml", folder / "second.yaml"
    with AgentMemory.open(_new_file(folder)) as memory:
        ids = memory.store_many([{"content": text} for text in _ANSWERS.values()])
        memory.update(ids[0], content="New services use PostgreSQL 18 as their database.")
        memory.delete(ids[1])
        memory.graph.add("Jonas", "drinks", "green tea", memory_id=ids[6])
        memory.export(first, format="store")
    with AgentMemory.open(folder / "copy" / "memories.db", agent_id="conformance") as copy:
        copy.import_(first)
        copy.export(second, format="store")
    if first.read_bytes() != second.read_bytes():
        raise PromiseBroken("the second export differs from the first")
    return f"{first.stat().st_size:,} bytes with history and graph came back the same"


def erase_without_trace(folder: Path, _: float) -> str:
    """Erase a memory that was changed and searched for: no byte of it is left."""
    path = _new_file(folder)
    with AgentMemory.open(path) as memory:
        memory_id = memory.store(f"The code word is {_ERASED_WORD} until Friday")
        memory.update(memory_id, content=f"The code word was {_ERASED_WORD} last week")
        memory.search(_ERASED_WORD)
        memory.store("The ferry leaves at nine")
        receipt = memory.erase(memory_id, backups=True)
    left = [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and _ERASED_WORD.encode() in file.read_bytes().lower()
    ]
    if left:
        raise PromiseBroken(f"the erased word is still in {', '.join(left)}")
    return f"{receipt.changes} changes erased, no byte of them in {receipt.files_scanned} files"


def obey_plain_sqlite(folder: Path, _: float) -> str:
    """Let Python's own SQLite insert a row: it is an ordinary memory, and is found."""
    path = _new_file(folder)
    with AgentMemory.open(path) as memory:
        process = _start(_PLAIN_SQLITE, path)
        output, errors = process.communicate()
        if output.strip() != "ok":
            raise PromiseBroken((errors or output).strip()[-300:])
        if not memory.search("when does the ferry leave?").results:
            raise PromiseBroken("the row that another program wrote is not found")
        _expect_sound(memory)
    return "a row of another SQLite is found, and the file is sound"


def find_answers(folder: Path, _: float) -> str:
    """Ask by keyword for stored memories: the right one is among the first five."""
    with AgentMemory.open(_new_file(folder), embedder=None) as memory:
        memory.store_many([{"content": text} for text in _ANSWERS.values()])
        answered = sum(
            any(hit.memory.content == answer for hit in memory.search(question, 5))
            for question, answer in _ANSWERS.items()
        )
    recall = answered / len(_ANSWERS)
    if recall < _LEAST_RECALL:
        raise PromiseBroken(f"{answered} of {len(_ANSWERS)} questions were answered")
    return f"{answered} of {len(_ANSWERS)} questions answered within five"


def answer_in_milliseconds(folder: Path, share: float) -> str:
    """Fill a file and search it by keyword; report memories stored per second, and milliseconds."""
    dice = random.Random(2)
    syllables = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()
    words = ["".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(4_000)]
    count = max(1_000, round(10_000 * share))
    texts = [" ".join(dice.choices(words, k=16)) for _ in range(count)]
    with AgentMemory.open(_new_file(folder), embedder=None) as memory:
        start = time.perf_counter()
        memory.store_many([{"content": text} for text in texts])
        rate = count / (time.perf_counter() - start)
        times = []
        for text in dice.sample(texts, 50):
            start = time.perf_counter()
            memory.search(" ".join(text.split()[3:7]), count_accesses=False)
            times.append((time.perf_counter() - start) * 1_000)
    middle, slow = sorted(times)[25], sorted(times)[47]
    detail = f"{count:,} memories: {middle:.1f} ms p50, {slow:.1f} p95; {rate:,.0f} stored a second"
    if middle > _SLOWEST_SEARCH_MS:
        raise PromiseBroken(detail)
    return detail


PROMISES: Final = (
    Promise("kills", "kill -9 loses nothing that was acknowledged", survive_kills),
    Promise("power-cut", "a power cut loses nothing that was acknowledged", survive_power_cuts),
    Promise("processes", "several processes write into one file", share_a_file),
    Promise("full-disk", "a full disk loses nothing, and reading goes on", survive_a_full_disk),
    Promise("export", "an export comes back, byte for byte", come_back_from_an_export),
    Promise("erase", "what is erased is in no file", erase_without_trace),
    Promise("sqlite", "any SQLite may read and write the file", obey_plain_sqlite),
    Promise("recall", "questions find their answers by keyword", find_answers),
    Promise("speed", "a search takes milliseconds", answer_in_milliseconds),
)


def _new_file(folder: Path) -> Path:
    path = folder / "memories.db"
    with AgentMemory.open(path, agent_id="conformance"):
        return path


def _start(script: str, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own scripts
        [sys.executable, "-c", script, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _expect_all_there(path: Path, texts: Sequence[str]) -> None:
    with AgentMemory.open(path, create=False) as memory:
        stored = {each.content for each in memory.list_recent(len(texts) + 1_000)}
        lost = [text for text in texts if text not in stored]
        if lost:
            raise PromiseBroken(f"{len(lost):,} of {len(texts):,} are lost, {lost[0]:.60} first")
        _expect_sound(memory)


def _expect_sound(memory: AgentMemory) -> None:
    report = memory.check()
    if not report.ok:
        raise PromiseBroken(f"the file is not sound: {report.problems[0].detail}")


# The report ---------------------------------------------------------------------------------


def attempt(promise: Promise, folder: Path, share: float) -> Outcome:
    """Test a promise in its own folder; any error counts as a broken promise."""
    own = folder / promise.name
    own.mkdir()
    start = time.monotonic()
    state: Literal["held", "broken", "not tried"] = "held"
    try:
        detail = promise.attempt(own, share)
    except NotTried as reason:
        state, detail = "not tried", str(reason)
    except Exception as error:  # noqa: BLE001 - a report is written in any case
        state = "broken"
        name = "" if isinstance(error, PromiseBroken) else f"{type(error).__name__}: "
        detail = f"{name}{error}"
    return Outcome(promise.name, promise.text, state, time.monotonic() - start, detail)


def machine(folder: Path) -> dict[str, str]:
    """Return the test environment: versions, system, cores, the folder's file system."""
    with AgentMemory.open(_new_file(folder / "machine")) as memory:
        sqlite = memory.info().sqlite_version or ""
    return {
        "agent-memory": __version__,
        "Python": platform.python_version(),
        "SQLite": sqlite,
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
        "file system": _file_system(folder),
        "one sync": f"{_sync_milliseconds(folder):.2f} ms",
    }


def _sync_milliseconds(folder: Path) -> float:
    """Return how long syncing 4 KB takes; almost no time means that no disk was reached."""
    times = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(20):
            file.write(bytes(4_096))
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - start) * 1_000)
    return sorted(times)[10]


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    mounts = [line.split()[1:3] for line in lines]
    around = [(place, kind) for place, kind in mounts if folder.resolve().is_relative_to(place)]
    return max(around, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def _place(chosen: str | None) -> Path:
    """Create the folder to work in: on the disk of the user's memories, but not among them."""
    near = Path(chosen) if chosen else memory_root().parent
    while not near.is_dir():
        near = near.parent
    if not os.access(near, os.W_OK):
        near = Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix="agent-memory-conformance-", dir=near))


@click.command(name="conformance")
@click.option("--dir", "place", metavar="DIR", help="Where to work (default: near the memories).")
@click.option("--quick", is_flag=True, help="Do a tenth of the work, in seconds.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([promise.name for promise in PROMISES]),
    help="Test only this promise. Repeatable.",
)
@click.option(
    "--synchronous",
    type=click.Choice(["FULL", "NORMAL"]),
    default="FULL",
    help="NORMAL does not wait for the disk: power-cut must then break.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def main(
    *, place: str | None, quick: bool, only: Sequence[str], synchronous: str, as_json: bool
) -> None:
    """Test the promises of agent-memory on this machine, and print a report.

    Your memories are not touched: everything happens in a new folder, which is removed afterwards.
    The exit code is 1 if a promise is broken. Please attach the report to a bug report.

    \b
    Examples:
      python -m agent_memory.conformance
      python -m agent_memory.conformance --dir /mnt/disk --only kills
      python -m agent_memory.conformance --only power-cut --synchronous NORMAL
    """  # noqa: D301 - click reads it
    folder = _place(place)
    cuts = functools.partial(survive_power_cuts, synchronous=synchronous)
    try:
        facts = machine(folder) | {"synchronous": synchronous}
        if not as_json:
            click.echo("\n".join(f"{name}: {fact}" for name, fact in facts.items()) + "\n")
        outcomes = []
        for promise in PROMISES:
            if only and promise.name not in only:
                continue
            click.echo(f"{promise.name} …", err=True)
            chosen = promise._replace(attempt=cuts) if promise.name == "power-cut" else promise
            outcome = attempt(chosen, folder, 0.1 if quick else 1.0)
            outcomes.append(outcome)
            if not as_json:
                click.echo(
                    f"{outcome.state:<9}  {outcome.promise} ({outcome.seconds:.1f} s)\n"
                    f"           {outcome.detail}"
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        promises = [outcome._asdict() for outcome in outcomes]
        click.echo(json.dumps({"machine": facts, "promises": promises}, indent=1))
    sys.exit(int(any(outcome.state == "broken" for outcome in outcomes)))
