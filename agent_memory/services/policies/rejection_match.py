"""Match texts against rejected values, of which only the hashes are stored.

A value is a sequence of words, and a text contains it if the same words occur in it in the same
order, next to each other: "555-1234" is in "call 555 1234 now", "hunter2" is not in "hunter22". So
every sequence of as many words is hashed and looked up, whatever is between the words.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.models.fields import UNSTORABLE
from agent_memory.models.memory import Memory
from agent_memory.text.normalize import DENSE

MAX_WORDS: Final = 1_000
"""Maximum words of a value that can be rejected."""
MAX_REASON_LENGTH: Final = 500
"""Maximum characters of a reason."""
TEXT_FIELDS: Final = frozenset({"content", "tags", "metadata", "task_metadata"})
"""The fields of a memory that may contain a value."""

_ASCII_WORDS: Final = {joint: re.compile(f"[a-z0-9{joint}]+") for joint in ("", "_")}
# Invisible characters, which must not split a word: soft hyphens, joiners, direction marks, emoji
# variation selectors.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_ZERO_WIDTH_SPACE: Final = "\u200b"
"""It separates words where a line may break, or is inside one: texts are read both ways."""
# All combining marks, including the vowels of Hindi and Thai, are in this range.
_MARKS_FROM: Final = 0x300
_MARKS_UNTIL: Final = 0x1F000

RejectedHashes = Mapping[int, AbstractSet[bytes]]
"""The hashes of the rejected values, by their number of words."""


class Rejected(NamedTuple):
    """A match of a rejected value; ``field`` is its place, as ``texts_of`` names it."""

    field: str
    words_hash: bytes


# Words --------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in one form for all ways to write them.

    A word is a run of letters and digits with the marks on them; in a script without spaces between
    words, each character is one. For a text without any words, its pieces between whitespace are
    returned instead ("🎉", "***"); an empty list, if nothing in it is visible.
    """
    form = form_of(text)
    return _word(form).findall(form) or form.split()


def earlier_words_of(text: str) -> list[str]:
    """Return the words as they were before ``_`` separated any: files have hashes of these."""
    form = form_of(text)
    return _word(form, "_").findall(form) or form.split()


def words_to_reject(text: str) -> list[str]:
    """Return the words of a value to reject, or raise ``ValidationError``.

    It must have 1 to 1,000 words. The error does not contain the value.
    """
    if not isinstance(text, str):
        message = f"is a {type(text).__name__}: give the value as a string"
        raise ValidationError.of("text", message, type(text).__name__)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        message = "is not valid UTF-8 (it has half of a surrogate pair): remove it"
        raise ValidationError.of("text", message, f"a string of {len(text)} characters")
    words = words_of(text)
    if not words:
        message = "has no visible characters: give the value to reject"
        raise ValidationError.of("text", message, f"a string of {len(text)} characters")
    if len(words) > MAX_WORDS:
        message = f"has {len(words):,} words: reject at most {MAX_WORDS:,}, those that must go"
        raise ValidationError.of("text", message, f"a string of {len(words)} words")
    return words


def check_reason(reason: str | None, rejected_hashes: RejectedHashes) -> str | None:
    """Return the reason if it is valid, or raise ``ValidationError``.

    It must have 1 to 500 characters, and no rejected value: only a value's hash may be kept.
    """
    if reason is None:
        return None
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_LENGTH:
        message = f"must have 1 to {MAX_REASON_LENGTH} characters, or be left out"
        raise ValidationError.of("reason", message, "reason")
    if UNSTORABLE.search(reason):
        message = "has a NUL character or half of a surrogate pair: remove it"
        raise ValidationError.of("reason", message, "reason")
    if find_rejected([("reason", reason)], rejected_hashes) is not None:
        message = "contains a rejected value, which must not be kept: use other words"
        raise ValidationError.of("reason", message, "reason")
    return reason


def hash_of(words: Iterable[str]) -> bytes:
    """Return the SHA-256 of words joined by a space: 32 bytes."""
    return hashlib.sha256(_encoded(" ".join(words))).digest()


def form_of(text: str) -> str:
    """Return a text casefolded, in Unicode's compatibility form, without invisible characters.

    Each word of ``words_of`` occurs in it unchanged.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", text)  # casefold() decomposes some letters


def _encoded(text: str) -> bytes:
    # Another program may have written half of a surrogate pair into metadata.
    return text.encode(errors="surrogatepass")


def _word(form: str, joint: str = "") -> re.Pattern[str]:
    return _ASCII_WORDS[joint] if form.isascii() else _any_word(joint)


@cache
def _any_word(joint: str) -> re.Pattern[str]:
    r"""Compile the pattern of a word on first use: ``\w`` alone has no combining marks."""
    letters = map(chr, range(_MARKS_FROM, _MARKS_UNTIL))
    combining = [letter for letter in letters if unicodedata.category(letter)[0] == "M"]
    is_dense = re.compile(f"[{DENSE}]").match
    dense_marks = "".join(character for character in combining if is_dense(character))
    other_marks = "".join(character for character in combining if not is_dense(character))
    letter = rf"[^\W{DENSE}{'' if joint else '_'}]"
    return re.compile(rf"(?=[\w{dense_marks}])[{DENSE}]|{letter}(?:{letter}+|[{other_marks}]+)*")


def _rows(text: str) -> Iterator[Sequence[str]]:
    """Yield the words of a text, and each sequence of pieces without a word in them."""
    if _ZERO_WIDTH_SPACE in text:
        yield from _rows(text.replace(_ZERO_WIDTH_SPACE, " "))
    form = form_of(text)
    if "_" in form:
        yield earlier_words_of(text)
    pattern = _word(form)
    words = pattern.findall(form)
    if words:
        yield words
    for is_wordless, pieces in groupby(form.split(), lambda piece: pattern.search(piece) is None):
        if is_wordless:
            yield list(pieces)


# Matching ----------------------------------------------------------------------------------


def texts_of(memory: Memory, fields: AbstractSet[str] = TEXT_FIELDS) -> Iterator[tuple[str, str]]:
    """Yield the texts of a memory that may contain a value, each with its place.

    They are its content, tags, metadata (including keys and whole numbers), and the outcome and the
    blockers of a task; ``fields`` may select some of ``TEXT_FIELDS``. Places look like ``content``,
    ``tags[0]`` and ``metadata.contact.phones[1]``; the place of a key is that of its mapping.
    """
    if "content" in fields:
        yield "content", memory.content
    if "tags" in fields:
        yield from texts_in("tags", memory.tags)
    if "metadata" in fields:
        yield from texts_in("metadata", memory.metadata)
    if "task_metadata" in fields and memory.task_metadata is not None:
        task = memory.task_metadata
        yield from texts_in("task_metadata.outcome", task.outcome)
        yield from texts_in("task_metadata.blockers", task.blockers)


def texts_in(place: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the texts in JSON data of any depth, each with its place; those of keys come first."""
    waiting = [(place, value)]
    while waiting:
        here, value = waiting.pop()
        if isinstance(value, str):
            yield here, value
        elif isinstance(value, int) and not isinstance(value, bool):
            yield here, str(value)
        elif isinstance(value, Mapping):
            yield from ((here, str(key)) for key in value)
            inner = [(f"{here}.{key}", item) for key, item in value.items()]
            waiting += reversed(inner)
        elif isinstance(value, list | tuple):
            inner = [(f"{here}[{number}]", item) for number, item in enumerate(value)]
            waiting += reversed(inner)


def find_rejected(
    texts: Iterable[tuple[str, str]], rejected_hashes: RejectedHashes
) -> Rejected | None:
    """Return the first rejected value that texts contain, or ``None``.

    Each of the ``texts`` has a name, as those of ``texts_of`` do.
    """
    if not rejected_hashes:
        return None
    for field, text in texts:
        for words in _rows(text):
            words_hash = _first_rejected(words, rejected_hashes)
            if words_hash is not None:
                return Rejected(field, words_hash)
    return None


def _first_rejected(words: Sequence[str], rejected_hashes: RejectedHashes) -> bytes | None:
    """Return the hash of the first rejected sequence of words."""
    line = _encoded(" ".join(words))
    starts: list[int] = []
    end = 0
    for word in words:
        starts.append(end)
        end += 1 + (len(word) if word.isascii() else len(_encoded(word)))
    starts.append(end)  # where a further word would start
    for count, hashes in rejected_hashes.items():
        for start, after in zip(starts, starts[count:], strict=False):
            words_hash = hashlib.sha256(line[start : after - 1]).digest()
            if words_hash in hashes:
                return words_hash
    return None
