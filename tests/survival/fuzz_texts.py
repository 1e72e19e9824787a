"""Inputs made of dice: texts, values of any type, and what becomes of bytes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

_PLAIN: Final = "harbour lantern violet granite orchard compass thimble walnut the we did".split()
_FTS: Final = (
    '"', '"" ""', "*", "har*", "^harbour", "AND", "OR NOT", "NEAR(harbour lantern, 3)",
    "content:x", "{content tags}:violet", "-walnut", "+granite", "(", ")))", "a-b", "c++",
    "don't", "'", "''", "\\", "%", "_", ";", "--", "/*", "*/", "rowid:1", "pairs:数",
    "memory_index", "?1", ":x", "@v", "$x",
)  # fmt: skip
_SQL: Final = (
    "'; DROP TABLE memories; --", "1 OR 1=1", "' UNION SELECT * FROM agent --",
    "\"; ATTACH 'x' AS y", "x' || load_extension('evil') || '", "); DELETE FROM memories; --",
    "' OR ''='", "$.a.b", "$[0]",
)  # fmt: skip
_SCRIPTS: Final = (
    "数据库", "데이터베이스", "データベース", "กาแฟเย็น", "ລາວ", "བོད་ཡིག", "မြန်မာ", "ភាសាខ្មែរ",
    "مرحبا بالعالم", "שלום עולם", "\u043d\u043e\u0440\u043c\u0430", "naïve café", "cafe\u0301",
    "ﬁancé", "Straße", "İSTANBUL", "ǅ", "ΰ", "हिन्दी",
    "\U0001d518\U0001d52b\U0001d526\U0001d520\U0001d52c\U0001d521\U0001d522", "𠀀𠀁",
    "👩\u200d👩\u200d👧\u200d👦", "🏳️\u200d🌈", "👍🏽", "🇩🇪", "\u202egnp.exe", "\u2066iso\u2069",
    "a\u200bb", "\ufeff", "\u00ad", "e" + "\u0301" * 40,
)  # fmt: skip
_DATES: Final = (
    "last week", "on 31 February 0000", "yesterday", "8 May 2023", "2023-05-08", "in 1999",
    "12/31/1999", "may", "on 0 January", "the 99th of March", "9999-12-31", "0001-01-01",
    "two days ago", "in 3 years", "-1 days ago", "999999999999 weeks ago", "next February 30",
    "2026-01-30T16:00:00+99:99", "1e9 days", "last 5 months", "between 2020 and 2021", "٢٠٢٣",
    "Ⅳ", "²", "½", "00000000000000000000002023",
)  # fmt: skip
_CONTROLS: Final = (
    "\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x7f", "\x85", "\r\n", "\t", "\v", "\f",
    "\u2028", "\u2029", "\ud800", "\udfff", "\udc80\ud83d", "\uffff", "\ufffe", "\U0010ffff",
    "\ue000", "\u180e",
)  # fmt: skip
WORDS: Final = (*_PLAIN, *_FTS, *_SQL, *_SCRIPTS, *_DATES, *_CONTROLS)
_RANGES: Final = (
    (0, 0x7F), (0, 0x2FF), (0x300, 0x36F), (0x590, 0x8FF), (0xE00, 0x109F), (0x2000, 0x2BFF),
    (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xF900, 0xFFFF),
    (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01EF), (0, 0x10FFFF),
)  # fmt: skip
FILTER_NAMES: Final = (
    "user_id", "agent_id", "run_id", "memory_type", "category", "tags", "tags_match",
    "date_range", "custom_filters", "kind", "importance", "task_status", "session_id",
    "min_access_count", "archived", "ids", "unknown",
)  # fmt: skip
SPECIAL_NUMBERS: Final[Sequence[int | float]] = (
    0, -0.0, 1, -1, 2, 100, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1,
    2**64, 10**30, 10**400, 0.5, 1.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"),
    float("nan"),
)  # fmt: skip


def text(dice: Random) -> str:
    """Return any text: mostly short, now and then of 100,000 characters or 10,000 words."""
    kind = dice.random()
    if kind < 0.35:
        return " ".join(dice.choices(WORDS, k=dice.randint(0, 8)))
    if kind < 0.6:
        return "".join(dice.choices(WORDS, k=dice.randint(0, 5)))
    if kind < 0.9:
        return letters(dice, dice.randint(0, 30))
    if kind < 0.988:
        return " ".join(dice.choices(WORDS, k=dice.randint(20, 200)))
    return _huge(dice)


def letters(dice: Random, count: int) -> str:
    """Return characters of a few ranges of Unicode, each any of its range."""
    ranges = dice.sample(_RANGES, k=2)
    return "".join(chr(dice.randint(*dice.choice(ranges))) for _ in range(count))


def _huge(dice: Random) -> str:
    sort = dice.randrange(5)
    if sort == 0:
        return dice.choice(WORDS) * (100_000 // 4)
    if sort == 1:
        return " ".join(f"w{number}" for number in range(10_000))
    if sort == 2:
        return letters(dice, 1) * 100_000
    if sort == 3:
        return "".join(dice.choices('"()*^-+:{} ', k=50_000))
    return " ".join(letters(dice, 3) for _ in range(10_000))


def clean_text(dice: Random) -> str:
    """Return a text that any verb takes: it has something to see, and no control characters."""
    said = "".join(letter for letter in text(dice)[:500] if letter.isprintable())
    return f"{dice.choice(_PLAIN)} {said}"


def number(dice: Random) -> int | float:
    """Return a number, often one at some limit."""
    if dice.random() < 0.5:
        return dice.choice(SPECIAL_NUMBERS)
    return dice.choice((dice.randint(-5, 200), dice.random(), dice.uniform(-1e6, 1e6)))


def moment(dice: Random) -> Any:
    """Return a time, or what somebody may take for one."""
    sort = dice.randrange(6)
    if sort == 0:
        return dice.choice(_DATES)
    if sort == 1:
        zone = dt.timezone(dt.timedelta(minutes=dice.randint(-1439, 1439)))
        return dt.datetime(
            dice.choice((1, 1970, 2026, 9999)), dice.choice((1, 12)), 31, tzinfo=zone
        )
    if sort == 2:
        return dt.datetime.fromtimestamp(dice.randint(0, 2**31), dt.UTC)
    if sort == 3:
        return f"20{dice.randint(10, 30)}-{dice.randint(0, 13)}-{dice.randint(0, 32)}"
    if sort == 4:
        offset = dice.choice(("", "Z", "+05:30", "+25:00"))
        return f"2026-01-{dice.randint(1, 31):02d}T{dice.randint(0, 24)}:00:00{offset}"
    return dice.choice((dt.date(2026, 1, 1), dt.time(1), dt.timedelta(1), 0, 1e12, None))


def value(dice: Random, depth: int = 0) -> Any:
    """Return a value of any type, nested at most a few deep, but now and then very deep."""
    sort = dice.random()
    if sort < 0.3:
        return text(dice) if dice.random() < 0.3 else dice.choice(WORDS)
    if sort < 0.5:
        return number(dice)
    if sort < 0.6:
        return dice.choice((True, False, None))
    if sort < 0.68:
        return _odd(dice)
    if sort < 0.69:
        return _deep(dice)
    if depth > 4:
        return dice.choice(_PLAIN)
    if sort < 0.85:
        return [value(dice, depth + 1) for _ in range(dice.randint(0, 4))]
    return {key(dice): value(dice, depth + 1) for _ in range(dice.randint(0, 4))}


def key(dice: Random) -> Any:
    """Return a key of a mapping: now and then of another type."""
    if dice.random() < 0.05:
        return dice.choice((1, None, True, 1.5, (1, 2), b"k"))
    return dice.choice(WORDS) if dice.random() < 0.8 else text(dice)[:200]


def _odd(dice: Random) -> Any:
    kinds: Sequence[Callable[[], Any]] = (
        lambda: b"bytes\xff",
        lambda: bytearray(b"x"),
        lambda: (1, "two"),
        lambda: {"a set"},
        lambda: frozenset((1, 2)),
        object,
        lambda: len,
        lambda: int,
        lambda: 1 + 2j,
        lambda: range(3),
        lambda: re.compile("x"),
        lambda: Exception("x"),
        lambda: moment(dice),
        lambda: _Text("a text of another class"),
        lambda: _Number(7),
    )
    return dice.choice(kinds)()


class _Text(str):
    """A text of a class of its own."""

    __slots__ = ()


class _Number(int):
    """A number of a class of its own."""


def _deep(dice: Random) -> Any:
    depth = dice.choice((15, 20, 21, 50, 200, 900, 3000))
    found: Any = dice.choice(_PLAIN)
    for _ in range(depth):
        found = [found] if dice.random() < 0.5 else {"a": found}
    return found


# What becomes of bytes ------------------------------------------------------------------------

_TOKENS: Final = (
    b"&a ", b"*a", b"&a [*a]", b"!!python/object/apply:os.system ['x']", b"!!binary ", b"!x ",
    b"<<: ", b"---\n", b"...\n", b"%YAML 1.1\n", b"? ", b"| \n", b"> \n", b"null", b"true", b"~",
    b".nan", b"-.inf", b"1e999", b"9" * 5000, b"0x1F", b"1:30", b"2026-02-30", b"0001-01-01",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80",
    b"\\ud800", b"\\u0000", b"\\x00", b"NaN", b"Infinity", b"{", b"}", b"[", b"]", b",", b":",
    b'"', b"'", b"\\", b"\r\n", b"\t", b"\n\n", b"#", b"- ", b"[" * 3000, b'{"a":' * 2000,
    b"- " * 2000, b"content: x\n", b'"content": "x",', b'"id": "../x",', b"\xe2\x80\xa8",
    b"\xc2\x85", b"a: &a [x,x]\nb: &b [*a,*a]\n", b"-1", b"1.5", b"[]", b"{}", b'""',
)  # fmt: skip
_TOKEN: Final = re.compile(rb"[A-Za-z0-9_.+-]+|\"(?:[^\"\\\n]|\\.)*\"|[^\sA-Za-z0-9]")


def mutated(dice: Random, data: bytes) -> bytes:
    """Return bytes with one to four things wrong with them."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        data = dice.choice(_MUTATIONS)(dice, data)
    return data[: 2 * 2**20]


def token(dice: Random) -> bytes:
    """Return something that means much to a reader of YAML or JSON, or any bytes."""
    return dice.choice(_TOKENS) if dice.random() < 0.8 else dice.randbytes(dice.randint(1, 8))


def _flipped(dice: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(min(dice.choice((1, 1, 3, 30)), len(changed))):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _cut(dice: Random, data: bytes) -> bytes:
    place = dice.randint(0, len(data))
    return data[:place] if dice.random() < 0.7 else data[place:]


def _inserted(dice: Random, data: bytes) -> bytes:
    place = _place(dice, data)
    return data[:place] + dice.choice(_TOKENS) + data[place:]


def _place(dice: Random, data: bytes) -> int:
    """Return a place, mostly one where a token begins."""
    place = dice.randint(0, len(data))
    found = _TOKEN.search(data, place) if dice.random() < 0.7 else None
    return found.start() if found else place


def _replaced(dice: Random, data: bytes) -> bytes:
    """Put something in place of a token."""
    found = _TOKEN.search(data, dice.randint(0, len(data)))
    if found is None:
        return _inserted(dice, data)
    return data[: found.start()] + dice.choice(_TOKENS) + data[found.end() :]


def _swapped(dice: Random, data: bytes) -> bytes:
    one = _TOKEN.search(data, dice.randint(0, len(data)))
    other = _TOKEN.search(data, one.end()) if one else None
    for _ in range(dice.randint(0, 20)):
        other = (_TOKEN.search(data, other.end()) if other else None) or other
    if one is None or other is None:
        return data[::-1]
    between = data[one.end() : other.start()]
    return data[: one.start()] + other[0] + between + one[0] + data[other.end() :]


def _lines(dice: Random, data: bytes) -> bytes:
    """Repeat, drop, move or indent lines."""
    lines = data.split(b"\n")
    start = dice.randrange(len(lines))
    piece = lines[start : start + dice.choice((1, 1, 2, 10))]
    other = dice.randint(0, len(lines))
    sort = dice.randrange(4)
    if sort == 0:
        lines[other:other] = piece * dice.choice((1, 2, 50))
    elif sort == 1:
        del lines[start : start + len(piece)]
    elif sort == 2:
        lines[other:other] = piece
        del lines[start : start + len(piece)]
    else:
        lines[start] = dice.choice((b" ", b"  ", b"\t", b"- ")) + lines[start]
    return b"\n".join(lines)


def _wrapped(dice: Random, data: bytes) -> bytes:
    sort = dice.randrange(5)
    if sort == 0:
        return dice.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")) + data
    if sort == 1:
        return data.replace(b"\n", dice.choice((b"\r\n", b"\r", b"\xe2\x80\xa8")))
    if sort == 2:
        wide = data[:20_000].decode(errors="replace")
        return wide.encode(dice.choice(("utf-16", "utf-16-le", "latin-1", "utf-32")), "replace")
    if sort == 3:
        return data + data
    return data.rstrip(b"\n") + b"\x00" * dice.choice((1, 100))


_MUTATIONS: Final = (
    _flipped, _flipped, _cut, _inserted, _inserted, _inserted, _replaced, _replaced, _replaced,
    _swapped, _lines, _lines, _wrapped,
)  # fmt: skip
