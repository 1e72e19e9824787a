"""Fuzz of the command line: it ends with a code that is documented, and prints no traceback."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from click.testing import CliRunner

from agent_memory import cli
from agent_memory.cli.options import ExitCode

from . import fuzz_texts as made
from .fuzz_core import Broken, Trials, broken_unless, workplace
from .tally import Tally
from .truth import audit, state_of
from .verbs import NAME, opened, sentences, standard

_EACH: Final = 60
"""Commands on one store, one after another; then another is made."""
_CODES: Final = frozenset(int(code) for code in ExitCode)


def commanded(cases: int, seed: str) -> Tally:
    """Run commands with words of any sort."""
    trials = Trials("commands", seed)
    logging.getLogger("agent_memory").setLevel(logging.CRITICAL)
    with workplace() as folder, contextlib.chdir(folder):
        _let_no_service_in(folder)
        template = folder / "template"
        (template / "bob").mkdir(parents=True)
        standard(template / "bob")
        with opened(template / "words.db") as words:
            words.store_many(sentences(3))
        while trials.tally.cases < cases:
            root = folder / "root"
            shutil.copytree(template, root)
            with contextlib.chdir(root):
                for _ in range(min(_EACH, cases - trials.tally.cases)):
                    line = _line(trials.random)
                    fed = made.mutated(trials.random, _LINES) if "-" in line else b""
                    trials.run(partial(_run, line, fed), line)
            _refuse_unsound(trials, root / "bob" / NAME)
            shutil.rmtree(root)
    return trials.tally


def _let_no_service_in(folder: Path) -> None:
    """Keep to what is here: no model is loaded, no service asked, no file of the user found."""
    for name in [it for it in os.environ if it.startswith(("AGENT_MEMORY_", "OPENAI_"))]:
        del os.environ[name]
    os.environ |= {"AGENT_MEMORY_EMBEDDER": "none", "HOME": str(folder)}


def _run(line: list[str], fed: bytes) -> None:
    """Run a command as its program does, and judge what came of it."""
    runner = CliRunner()
    with runner.isolation(input=fed) as (out, err, _):
        code = cli.run(line)
        printed, told = out.getvalue(), err.getvalue().decode(errors="replace")
    if "this is a bug in agent-memory" in told or "Traceback" in told:
        raise Broken("errors", told[-600:])
    broken_unless(code in _CODES, f"ended with {code}: {told[-300:]}", count="errors")
    is_json = "--json" in line and "--help" not in line and "-h" not in line
    if is_json and code == ExitCode.OK and printed.strip() and "completion" not in line:
        _refuse_other_than_json(printed)
    if is_json and told.startswith("{"):
        _refuse_other_than_json(told.encode())


def _refuse_other_than_json(printed: bytes) -> None:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    text = printed.decode()
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError as error:
        raise Broken("mismatches", f"printed no JSON ({error}): {text[:300]}") from error


def _refuse_unsound(trials: Trials, path: Path) -> None:
    """Count it when a file is not sound after commands. It may have been replaced."""
    if path.exists():
        audit(path, [state_of(path)]).into(trials.tally, "fuzz, commands: at the end")


# Lines ------------------------------------------------------------------------------------------


def _line(dice: Random) -> list[str]:
    """Return the words of a command."""
    words = ["--agent", "bob"] if dice.random() < 0.9 else dice.choice(_WHOSE)
    words = ["--root", ".", *words] if dice.random() < 0.97 else [*words, "--db", "words.db"]
    if dice.random() < 0.5:
        words.append("--json")
    name = dice.choice(tuple(_COMMANDS)) if dice.random() < 0.98 else _word(dice)
    words += [name]
    arguments, options = _COMMANDS.get(name, ((), ()))
    for make in arguments:
        words.append(make(dice))
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        words += _option(dice, options)
    if name in _ASKING and dice.random() < 0.8:
        words.append("--yes")
    if dice.random() < 0.05:
        words.insert(dice.randint(0, len(words)), _word(dice))
    return [word.replace("\x00", "") if dice.random() < 0.9 else word for word in words]


def _option(dice: Random, options: tuple[str, ...]) -> list[str]:
    if not options or dice.random() < 0.05:
        return [dice.choice(("--json", "--help", "-h", "--", "--odd", "-x", _word(dice)))]
    name = dice.choice(options)
    if name.endswith("!"):
        return [name[:-1]]
    return [name, dice.choice(_VALUES.get(name, (_word,)))(dice)]


def _word(dice: Random) -> str:
    """Return a word: no path to elsewhere."""
    text = made.text(dice)[:200] if dice.random() < 0.5 else dice.choice(made.WORDS)
    return text.replace("/", "").replace("~", "").replace("..", ".")


def _id(dice: Random) -> str:
    return f"fact-{dice.randrange(14)}" if dice.random() < 0.7 else _word(dice)


def _number(dice: Random) -> str:
    return str(made.number(dice))[:300]


def _time(dice: Random) -> str:
    if dice.random() < 0.5:
        return dice.choice(
            ("7d", "2w", "12h", "999999w", "0d", "2026-01-28", "9999-12-31", "0001-01-01")
        )
    return str(made.moment(dice))


def _json(dice: Random) -> str:
    if dice.random() < 0.5:
        return dice.choice(_OBJECTS)
    return made.mutated(dice, b'{"number": {"gte": 2}, "OR": [{"word": "a"}]}').decode(
        errors="replace"
    )


def _path(dice: Random) -> str:
    return dice.choice(_PATHS) if dice.random() < 0.9 else _word(dice)


def _format(dice: Random) -> str:
    return dice.choice(
        ("store", "scratchpad", "json", "jsonl", "directory", "sqlite", "settings", "odd")
    )


def _setting(dice: Random) -> str:
    return dice.choice(
        ("sharing", "backups_kept", "retention", "categories", "on_duplicate", "odd")
    )


_LINES: Final = b'{"content": "one", "tags": ["a"]}\n{"content": "two", "metadata": {"n": 1}}\n' * 3
_WHOSE: Final[tuple[list[str], ...]] = (
    [], ["--agent", "nobody"], ["--agent", "../bob"], ["--agent", ""],
    ["--agent", "bob", "--debug-not"],
)  # fmt: skip
_PATHS: Final = (
    "out.yaml", "new", "bob/memories.db", "bob/memories.db-wal", "bob", ".", "", "bob/other.yaml",
    "bob/kept.db", "words.db", "-", "missing/x", "out.yaml/x", "latest", "a" * 300, "new.db",
    "bob/scratchpad.yaml.backup",
)  # fmt: skip
_OBJECTS: Final = (
    "{}", "[]", "null", "{", '{"a": NaN}', '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}",
    '{"a": "\\ud800"}', '{"number": {"gt": 3}}', '{"AND": 1}', '{"NOT": {"number": 1}}',
    '{"": ""}', '{"a": {"nosuch": 1}}', '{"a":' * 500 + "1" + "}" * 500, '{"a":' * 5000,
    "'; DROP TABLE memories; --",
)  # fmt: skip
_FILTERS: Final = (
    "--since", "--until", "--category", "--tag", "--any-tag!", "--kind", "--importance",
    "--status", "--session", "--user", "--run", "--where", "--archived!", "--as-of",
)  # fmt: skip
_DESCRIPTION: Final = (
    "--category", "--tag", "--kind", "--importance", "--user", "--run", "--timestamp",
    "--metadata", "--status", "--blocker", "--outcome",
)  # fmt: skip
_VALUES: Final[dict[str, tuple[Callable[[Random], str], ...]]] = {
    **dict.fromkeys(("--since", "--until", "--timestamp", "--as-of"), (_time,)),
    **dict.fromkeys(("--where", "--metadata"), (_json,)),
    **dict.fromkeys(("--limit", "--budget", "--if-version", "--change", "--lift"), (_number,)),
    **dict.fromkeys(("--min-similarity",), (_number,)),
    **dict.fromkeys(("--output", "--jsonl"), (_path,)),
    "--format": (_format,),
    "--category": (lambda dice: dice.choice(("note", "odd")), _word),
    "--kind": (lambda dice: dice.choice(("task", "core", "odd")),),
    "--status": (lambda dice: dice.choice(("completed", "blocked", "odd")),),
    "--importance": (lambda dice: dice.choice(("high", "odd")),),
    "--on-duplicate": (lambda dice: dice.choice(("keep", "merge", "refuse", "odd")),),
    "--on-conflict": (lambda dice: dice.choice(("skip", "replace", "newer", "keep-both", "odd")),),
    "--shared": (lambda dice: dice.choice(("bob", "nobody")), _word),
}
_COMMANDS: Final[dict[str, tuple[tuple[Callable[[Random], str], ...], tuple[str, ...]]]] = {
    "search": (
        (_word,),
        (*_FILTERS, "--limit", "--min-similarity", "--no-count!", "--explain!", "--shared"),
    ),
    "store": (
        (_word,),
        (*_DESCRIPTION, "--id", "--session", "--jsonl", "--skip-bad!", "--on-duplicate"),
    ),
    "update": ((_id,), (*_DESCRIPTION, "--content", "--if-version")),
    "forget": ((_id,), ()),
    "promote": ((_id,), ()),
    "demote": ((_id,), ()),
    "duplicates": ((), ("--user", "--run", "--limit")),
    "archive": ((_id,), ()),
    "unarchive": ((_id,), ()),
    "undo": ((), ("--change",)),
    "tidy": ((), ("--dry-run!",)),
    "erase": ((), (*_FILTERS[:-1], "--backups!", "--finish!")),
    "reject": ((), ("--reason", "--lift", "--list!")),
    "show": ((_id,), ("--as-of",)),
    "recent": ((), (*_FILTERS, "--limit")),
    "scratchpad": ((), ()),
    "context": ((), ("--budget",)),
    "history": ((), ("--limit",)),
    "embed": ((), ()),
    "migrate": ((), ("--dry-run!",)),
    "rollback": ((), ()),
    "export": ((), ("--format", "--output", "--embeddings!", "--as-of", "--force!")),
    "import": ((_path,), ("--format", "--on-conflict", "--skip-bad!", "--dry-run!")),
    "agents": ((), ()),
    "info": ((), ()),
    "configure": ((_setting, _word), ()),
    "check": ((), ("--repair!",)),
    "backup": ((), ("--force!",)),
    "backups": ((), ()),
    "restore": ((_path,), ()),
    "completion": ((_word,), ()),
}
_ASKING: Final = frozenset({"forget", "erase", "restore", "migrate", "rollback"})
