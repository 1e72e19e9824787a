"""A thousand outputs of tools and turns of a conversation, each with what is to be captured of it.

Two files beside this one hold the texts, in the shapes that such outputs have; every sentence was
written for this test. ``labelled_tuned.txt`` is what the rules were tuned on,
``labelled_held_out.txt`` was written before the first rule, and no rule was changed for it. A text
begins with ``@@ name source`` and lines with its labels:

    > note|pattern: vpn, mtu     to be captured: a note or a pattern that holds both words
    ~ note: vpn, mtu             worth keeping, but said in none of the words that are looked for

A text without a label gives nothing. What is to be captured is what somebody says to be kept: an
order to remember, a decision, a finding, a fix, a preference, what is left to do. Nothing of
programs, help, licences, listings, adverts, songs and pages about anything, questions, denials and
suppositions; of comments in the project's own code what is left to do, and nothing else.

``outputs`` puts each text amid generated output of other kinds, to 10 to 50,000 characters, the
same in every process.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER: Final = re.compile(r"@@ (?P<name>[th]\d+) (?P<source>\S+)")
_LABEL: Final = re.compile(r"(?P<mark>[>~]) (?P<types>[a-z|]+): (?P<words>.+)")
FILES: Final = {"tuned": "labelled_tuned.txt", "held out": "labelled_held_out.txt"}


@dataclass(frozen=True)
class Label:
    """What is to be captured: one of the types, with all of the words."""

    types: tuple[str, ...]
    words: tuple[str, ...]

    def is_met_by(self, content: str) -> bool:
        return all(word in content.lower() for word in self.words)


@dataclass(frozen=True)
class Output:
    """A text, where it comes from, and its labels; ``unsaid`` are facts without a cue."""

    name: str
    source: str
    text: str
    labels: tuple[Label, ...] = ()
    unsaid: tuple[Label, ...] = ()


def written(part: str) -> list[Output]:
    """Return the texts of a part (``tuned`` or ``held out``) as they were written."""
    found: list[Output] = []
    lines: list[str] = []
    text = Path(__file__).with_name(FILES[part]).read_text(encoding="utf-8")
    for line in [*text.splitlines(), "@@ t0 end"]:
        if _HEADER.fullmatch(line):
            if lines:
                found.append(_output(lines))
            lines = [line]
        elif lines:
            lines.append(line)
    return found


def _output(lines: list[str]) -> Output:
    header = _HEADER.fullmatch(lines[0])
    assert header is not None
    labels: dict[str, list[Label]] = {">": [], "~": []}
    rest = lines[1:]
    while rest and (label := _LABEL.fullmatch(rest[0])):
        words = tuple(word.strip().lower() for word in label["words"].split(","))
        labels[label["mark"]].append(Label(tuple(label["types"].split("|")), words))
        rest = rest[1:]
    text = "\n".join(rest).rstrip("\n") + "\n"
    return Output(header["name"], header["source"], text, tuple(labels[">"]), tuple(labels["~"]))


def outputs(part: str, count: int, *, seed: int = 7) -> list[Output]:
    """Return ``count`` outputs of a part: its texts in turn, amid generated ones."""
    bases = written(part)
    made: list[Output] = []
    for n in range(count):
        dice = random.Random(f"{seed} {part} {n}")
        made.append(_amid(bases[n % len(bases)], dice, least=int(n >= len(bases))))
    return made


def _amid(base: Output, dice: random.Random, *, least: int) -> Output:
    """Put a text amid at least so many generated ones."""
    target = int(math.exp(dice.uniform(math.log(10), math.log(50_000))))
    before: list[str] = []
    after: list[str] = []
    length = len(base.text)
    while length < target or len(before) + len(after) < least:
        kinds = PROSE if base.source.startswith("turn:") else NOISES
        piece = dice.choice(kinds)(dice)
        if length + len(piece) + 1 > 50_000:
            break
        (before if dice.random() < 0.5 else after).append(piece)
        length += len(piece) + 1
    text = "\n".join([*before, base.text, *after])
    return Output(base.name, base.source, text, base.labels, base.unsaid)


# What stands around -------------------------------------------------------------------------

_NOUNS: Final = """
    invoice report session worker gateway parser harbour index bucket schema cluster ticket sensor
    template backup printer ledger catalogue customer shipment badge calendar kitchen meadow
""".split()
_VERBS: Final = "reads writes sends keeps checks moves counts sorts drops builds mirrors".split()
_ADVERBS: Final = "quietly twice nightly slowly at once in order by hand on demand".split()


def _noun(dice: random.Random) -> str:
    return dice.choice(_NOUNS)


def _sentence(dice: random.Random) -> str:
    clause = f"the {_noun(dice)} {dice.choice(_VERBS)} the {_noun(dice)} {dice.choice(_ADVERBS)}"
    other = f", and the {_noun(dice)} waits" if dice.random() < 0.4 else ""
    return f"{clause}{other}.".capitalize()


def prose(dice: random.Random) -> str:
    lines: list[str] = []
    words = " ".join(_sentence(dice) for _ in range(dice.randint(2, 7))).split()
    line = ""
    for word in words:
        if len(line) + len(word) > 88:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join(["", *lines, line, ""])


def log(dice: random.Random) -> str:
    lines = []
    for n in range(dice.randint(3, 30)):
        said = dice.choice(
            [
                f"{_noun(dice)} started in {dice.randint(1, 900)} ms",
                f"GET /{_noun(dice)}s/{dice.randint(1, 9999)} {dice.choice([200, 200, 404])}",
                f"discovered {dice.randint(2, 900)} {_noun(dice)}s",
                f"{_noun(dice)}: remember={dice.choice(['true', 'false'])} important=false",
            ]
        )
        level = dice.choice(["INFO ", "DEBUG", "WARN "])
        lines.append(f"2025-05-{n % 28 + 1:02} 0{n % 10}:00:{n:02},{n:03} {level} [{n}] {said}")
    return "\n".join(["", *lines, ""])


def listing(dice: random.Random) -> str:
    lines = [
        f"-rw-r--r-- 1 app app {dice.randint(1, 99999):6} Mar {n % 28 + 1:2} 10:00 "
        f"{dice.choice(['', 'important-', 'remember-'])}{_noun(dice)}_{n}.md"
        for n in range(dice.randint(3, 25))
    ]
    return "\n".join(["", f"total {len(lines) * 4}", *lines, ""])


def code(dice: random.Random) -> str:
    lines = []
    for _ in range(dice.randint(1, 6)):
        name, other = _noun(dice), _noun(dice)
        lines += [
            f"def {name}_of({other}, *, important=False, remember=None):",
            f'    """Return the {name} of a {other}."""',
            f"    found = [it for it in {other} if it.{name} is not remember]",
            f"    return found[:{dice.randint(1, 90)}] if important else found",
            "",
        ]
    return "\n".join(["", *lines])


def rows(dice: random.Random) -> str:
    lines = [
        f"{n},{_noun(dice)},{dice.uniform(0, 100):.2f},{dice.choice(['important', 'normal', ''])}"
        for n in range(dice.randint(3, 40))
    ]
    return "\n".join(["", "id,name,share,label", *lines, ""])


def answers(dice: random.Random) -> str:
    data = [
        {"id": n, "name": _noun(dice), "important": dice.random() < 0.5, "tags": [_noun(dice)]}
        for n in range(dice.randint(2, 20))
    ]
    return "\n" + json.dumps(data, indent=dice.choice([None, 2])) + "\n"


def tests(dice: random.Random) -> str:
    lines = [
        f"tests/test_{_noun(dice)}.py::test_{dice.choice(['remember', 'important', 'plain'])}_{n}"
        f" PASSED [{n:3}%]"
        for n in range(dice.randint(3, 25))
    ]
    return "\n".join(["", *lines, f"== {len(lines)} passed in {dice.uniform(1, 9):.2f}s ==", ""])


def styles(dice: random.Random) -> str:
    lines = [
        f".{_noun(dice)} {{ margin: {dice.randint(0, 40)}px !important; }}"
        for _ in range(dice.randint(2, 15))
    ]
    return "\n".join(["", *lines, ""])


def other_scripts(dice: random.Random) -> str:
    pieces = [
        "在庫の確認は月曜日に行う。",
        "今天没有新的消息。",
        "Der Bericht liegt im Ordner.",
        "Всё готово.",
    ]
    return "\n".join(["", *(dice.choice(pieces) for _ in range(dice.randint(2, 12))), ""])


PROSE: Final[list[Callable[[random.Random], str]]] = [prose, other_scripts]
NOISES: Final = [prose, log, listing, code, rows, answers, tests, styles, other_scripts]
