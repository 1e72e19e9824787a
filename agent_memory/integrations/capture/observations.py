"""Extracts observations from a text: the sentences worth keeping, not the text around them.

A text is searched for matches of the capture patterns. At each match the sentence is taken, without
markup and leading labels, and weighed: who says it, in which words, and in which surroundings.
Pure: no file, no clock but the one given, time linear in the length of the text.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from agent_memory.integrations.capture import cues
from agent_memory.models.config import DEFAULT_CAPTURE_PATTERNS, MemoryCaptureConfig
from agent_memory.models.conversation import Observation
from agent_memory.models.fields import UNSTORABLE, validate_memory_content
from agent_memory.models.limits import MAX_MEMORY_CONTENT_LENGTH
from agent_memory.models.times import now_utc
from agent_memory.text import passages
from agent_memory.text.capture_words import CAPTURE_WORDS, has_ordering_word
from agent_memory.text.passages import Passage
from agent_memory.text.secrets import MASK
from agent_memory.text.standing_orders import standing_orders

LONGEST_PIECE: Final = 1_000
"""Characters of a line that a pattern sees at a time: some patterns are slow on long lines."""
MOST_PLACES: Final = 2_000
"""Matches in one text that are weighed; those that repeat word for word count once."""
MOST_SPOTS: Final = 50_000
"""Matches in one text that are looked at at all."""
MOST_KEYWORDS: Final = 5

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_RECALLED: Final = re.compile(r"<memories-([0-9a-f]{8})>")
_BEFORE_LETTERS: Final = re.compile(r"^[\W_]+")
_MASK: Final = re.compile(rf"{re.escape(MASK)}[^\]]*\]")
_ENTRY: Final = re.compile(r"\{[\w.:-]{1,200} by [^{}]{1,200}\}\s*$")
_ESCAPED_SPACE: Final = re.compile(r"\\[nrt]")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_URL: Final = re.compile(r"\w+://\S+|(?:^|\s)[~.]{0,2}/\S+")
_DENSE: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD: Final = re.compile(r"[^\W_][\w.+#/-]*[\w+#]|[^\W\d_]", re.UNICODE)
_KEYWORD: Final = re.compile(
    "[\u30a0-\u30ff]{2,10}|[\u3400-\u9fff]{2,6}|[^\\W\\d_][\\w+#.-]{1,20}[\\w+#]"
)
_STOP_WORDS: Final = frozenset(
    """
    about after again all also and any are because been before being between both but can could
    decided did discovered does doing done down each else even every few for from further get had
    has have having her here him his how important into its just learned let like more most must
    need never note not now off once one only other our out over own please preference remember
    same shall she should since so solved some such than that the their them then there these they
    this those through todo too under until use used using very was way were what when where which
    while who why will with would you your fixme always instead it's i'm we're don't der die das
    und ist nicht ein eine einen dem den von mit für auf wird jeden
    """.split()
)

# Factors that lower the confidence of a sentence, by its surroundings.
_AMID: Final = {
    "fenced": 0.3, "code": 0.3, "among code": 0.5, "help": 0.4, "legal": 0.4, "sales": 0.5,
    "listed": 0.1, "foreign": 0.2, "not added": 0.1, "done": 0.0, "log": 0.9,
}  # fmt: skip
_TO_DO: Final = re.compile(r"TODO:|FIXME:")
_WEAK_KEYS: Final = frozenset({"description", "title", "summary"})
_FROM_THE_WEB: Final = re.compile(r"web|brows|fetch|crawl|scrape|google", re.IGNORECASE)
_HOPELESS: Final = 0.2
"""A sentence whose own words give it no more confidence than this is not examined further."""
_BY_THE_USER: Final = 0.25
_REACH_FOR_USERS: Final = MAX_MEMORY_CONTENT_LENGTH + 1_000
"""Characters on either side of a place that are examined for a user's long sentence: all that a
memory may have, and the label."""
_MOST_LONG: Final = 20
"""Long sentences of one text that are looked at: 2,000 of them took half a minute."""
_FROM_A_PAGE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Scanned:
    """The observations in a text that are confident enough, and how many were not.

    ``is_cut``: something that the user said is longer than a memory may be, and left out.
    """

    observations: list[Observation]
    below_confidence: int = 0
    is_cut: bool = False


def scan(
    text: str,
    *,
    source: str,
    session_id: str,
    config: MemoryCaptureConfig | None = None,
    now: datetime | None = None,
    pause: Callable[[], object] = bool,
) -> Scanned:
    """Return the observations in a text that are worth keeping, in order; usually none.

    ``source`` says where the text comes from: ``turn:user`` and ``turn:assistant`` are what was
    said in a conversation, anything else is taken as the name of a tool. The user's words get the
    highest confidence; web pages, which anybody may have written, the lowest. ``config`` has the
    patterns; they are matched without regard to case, against one line at a time, at most 1,000
    characters of it. ``now`` is the time that the observations carry (default: the current time).
    ``pause`` is called now and then, and may let other threads run.

    Raises Pydantic's ``ValidationError`` for an invalid source or session.
    """
    chosen = config or MemoryCaptureConfig.defaults()
    observations: dict[str, Observation] = {}
    below = 0
    is_cut = False
    is_users = source.startswith("turn:user")
    longest = MAX_MEMORY_CONTENT_LENGTH if is_users else passages.LONGEST_SENTENCE
    longest = min(longest, chosen.max_content_length)
    for passage in _passages(text, chosen, pause, is_users=is_users):
        kind, sure = cues.judge(passage)
        sure = _weighed(passage, sure, source)
        content = cues.without_label(passage.sentence)
        if len(content) > longest:
            is_cut |= is_users and sure >= chosen.min_confidence
            continue
        if not _fits(passage.sentence, content, chosen):
            continue
        if sure < chosen.min_confidence:
            below += 1
            continue
        earlier = observations.get(content)
        if earlier is None or earlier.confidence < sure:
            observations[content] = Observation(
                content=content,
                observation_type=kind,
                source=source,
                keywords=keywords(content),
                confidence=sure,
                session_id=session_id,
                timestamp=now or now_utc(),
            )
    most = chosen.max_captures_per_output
    kept = sorted(observations.values(), key=lambda observation: -observation.confidence)[:most]
    chosen_ones = [observation for observation in observations.values() if observation in kept]
    return Scanned(chosen_ones, below, is_cut)


def count_cues(text: str, config: MemoryCaptureConfig, *, is_users: bool = False) -> int | None:
    """Count quickly the places where a text may say something, up to 10; 0 is certain.

    ``None`` means that only the user's own patterns can tell.
    """
    if tuple(config.capture_patterns) != DEFAULT_CAPTURE_PATTERNS:
        return None
    lower = text.lower()
    count = int(is_users and has_ordering_word(text))
    for word in CAPTURE_WORDS:
        spot = lower.find(word)
        while spot >= 0 and count < 10:
            count += 1
            spot = lower.find(word, spot + len(word))
    return count


def keywords(content: str) -> list[str]:
    """Return up to five words that say what a sentence is about, names first, in lower case.

    None is a number or looks random: neither a key or a password nor its mask may become a tag.
    """
    content = _MASK.sub(" ", content)
    words = [word for word in _KEYWORD.findall(content) if _is_telling(word)]
    ranked = sorted(dict.fromkeys(words), key=_rank)
    return list(dict.fromkeys(word.lower().strip(".-") for word in ranked))[:MOST_KEYWORDS]


def _rank(word: str) -> int:
    is_name = any(letter.isupper() for letter in word[1:]) or any(
        letter in "_.+#-" for letter in word
    )
    return 0 if is_name else 1 if word[0].isupper() else 2 if len(word) > 6 else 3


def _is_telling(word: str) -> bool:
    if word.lower() in _STOP_WORDS or sum(letter.isdigit() for letter in word) > 2:
        return False
    return len(word) > 2 or _DENSE.match(word) is not None


# Where to look ------------------------------------------------------------------------------


def _passages(
    text: str, config: MemoryCaptureConfig, pause: Callable[[], object], *, is_users: bool
) -> Iterator[Passage]:
    """Yield the passages that the patterns match, including those in texts within texts.

    A long run without a stop is no sentence, except in what a user said: "Remember that" counts
    for all that follows.
    """
    text = _cleaned(text)
    done_to = fences = fenced_to = weighed = long_ones = 0
    recalled = _recalled(text)
    seen: set[tuple[str, str]] = set()
    for start, end in islice(_places(text, config, is_users=is_users), MOST_SPOTS):
        pause()
        if start < done_to or any(low <= start < high for low, high in recalled):
            continue
        near = text[max(0, start - 60) : start], text[start : end + 60]
        if near in seen or is_part_of_name(text, start, end):
            continue
        seen.add(near)
        weighed += 1
        if weighed > MOST_PLACES:
            return
        fences += len(_FENCE.findall(text, fenced_to, start))
        fenced_to = start
        if (span := passages.quoted(text, start, end)) is not None:
            done_to = span[1]
            yield from _inner(text[span[0] : span[1]], span[2], config)
        else:
            is_fenced = fences % 2 == 1
            passage = passages.passage(text, start, end, fenced=is_fenced)
            if is_users and len(passage.sentence) > passages.LONGEST_SENTENCE:
                long_ones += 1
                if long_ones > _MOST_LONG:
                    continue
                reach = _REACH_FOR_USERS
                passage = passages.passage(text, start, end, fenced=is_fenced, reach=reach)
            yield passage


def _inner(text: str, key: str, config: MemoryCaptureConfig) -> Iterator[Passage]:
    """Yield the passages of a quoted text: a value in JSON, or a cell."""
    plain = unescaped_text(text)
    for start, end in _places(plain, config):
        if is_part_of_name(plain, start, end):
            continue
        inner = passages.passage(plain, start, end)
        yield inner._replace(shapes=inner.shapes | {"value"}, key=key)


def is_part_of_name(text: str, start: int, end: int) -> bool:
    """Return cheaply whether a match is a word of a program rather than of a person."""
    return cues.is_stuck(text[max(0, start - 2) : start], text[start:end], text[end : end + 2])


def unescaped_text(text: str) -> str:
    """Return what a quoted text stands for, without characters that cannot be stored."""
    return UNSTORABLE.sub(" ", passages.unescaped(text))


def _cleaned(text: str) -> str:
    """Return a text without terminal colours and without characters that cannot be stored."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() and "\x00" not in text else UNSTORABLE.sub(" ", text)


def _recalled(text: str) -> list[tuple[int, int]]:
    """Return the spans of memories that were recalled earlier, between their marks."""
    spans: list[tuple[int, int]] = []
    if "<memories-" in text:
        for mark in _RECALLED.finditer(text):
            if not spans or mark.start() >= spans[-1][1]:
                end = text.find(f"</memories-{mark[1]}>", mark.end())
                spans.append((mark.start(), len(text) if end < 0 else end))
    return spans


def _places(
    text: str, config: MemoryCaptureConfig, *, is_users: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield where something may be said, in order.

    Of what a user said, the first letters of sentences that hold from now on are among them.
    """
    is_usual = tuple(config.capture_patterns) == DEFAULT_CAPTURE_PATTERNS
    orders = standing_orders(text) if is_users and is_usual else iter(())
    return heapq.merge(_matches(text, config), orders)


def _matches(text: str, config: MemoryCaptureConfig) -> Iterator[tuple[int, int]]:
    """Yield the spans that the patterns match, in order; overlapping ones separately."""
    patterns = _compiled(tuple(config.capture_patterns))
    if "\\" in text:  # the "n" of an escaped line break is not a letter of the next word
        text = _ESCAPED_SPACE.sub("  ", text)
    is_usual = tuple(config.capture_patterns) == DEFAULT_CAPTURE_PATTERNS
    for low, high in _lines_with_cues(text) if is_usual else _pieces(text, 0, len(text)):
        spans = {
            match.span()
            for pattern in patterns
            for match in pattern.finditer(text, low, high)
            if match[0]
        }
        yield from sorted(spans)


def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)  # cached


def _pieces(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the lines between two positions, long ones in pieces that end between words."""
    while low < high:
        end = text.find("\n", low, high)
        end = high if end < 0 else end
        while end - low > LONGEST_PIECE:
            cut = text.rfind(" ", low + LONGEST_PIECE // 2, low + LONGEST_PIECE)
            cut = low + LONGEST_PIECE if cut < 0 else cut
            yield low, cut
            low = cut
        yield low, end
        low = end + 1


def _lines_with_cues(text: str) -> Iterator[tuple[int, int]]:
    """Yield the pieces around what A's patterns need, without trying them on all the others."""
    lower = text.lower()
    if len(lower) != len(text):  # a few letters become two in lower case
        yield from _pieces(text, 0, len(text))
        return
    spots: list[int] = []
    for word in CAPTURE_WORDS:
        spot = lower.find(word)
        last = len(spots) + MOST_SPOTS
        while spot >= 0 and len(spots) < last:
            spots.append(spot)
            spot = lower.find(word, spot + len(word))
    done_to = 0
    for spot in sorted(spots):
        if spot < done_to:
            continue
        low = max(done_to, text.rfind("\n", max(0, spot - LONGEST_PIECE), spot) + 1)
        low = max(low, spot - LONGEST_PIECE // 2) if spot - low > LONGEST_PIECE // 2 else low
        end = text.find("\n", spot, spot + LONGEST_PIECE // 2)
        done_to = min(len(text), spot + LONGEST_PIECE // 2) if end < 0 else end
        yield low, done_to


# Weighing -----------------------------------------------------------------------------------


def _weighed(passage: Passage, sure: float, source: str) -> float:
    """Return the confidence of a passage, given its surroundings and its speaker."""
    if sure < _HOPELESS or _ENTRY.search(passage.sentence) or _in_address(passage):
        return min(sure, _HOPELESS)
    shapes = passage.shapes | passages.kind_of_text(passage.around)
    for shape in shapes:
        if shape in {"code", "among code"} and "comment" in shapes:
            continue
        sure *= _AMID.get(shape, 1.0)
    if "comment" in shapes:
        sure *= 0.75 if _TO_DO.match(passage.sentence, passage.at) else 0.5
    if "among settings" in shapes and passage.sentence[:1].islower():
        sure *= 0.5
    if "value" in shapes and passage.key:
        sure *= 0.6 if passage.key.lower() in _WEAK_KEYS else 1.0
    if not _says_enough(passage.sentence):
        sure *= 0.3
    if source.startswith("turn:user"):
        return min(1.0, sure + _BY_THE_USER) if sure >= 0.4 else sure
    if not source.startswith("turn:") and _FROM_THE_WEB.search(source):
        sure *= _FROM_A_PAGE
    return min(1.0, sure)


def _says_enough(sentence: str) -> bool:
    """Return whether a sentence has three words, or two after a label such as "TODO:"."""
    content = cues.without_label(sentence)
    is_labelled = sentence.removesuffix(content).rstrip().endswith(":")
    least = 2 if is_labelled else 3
    return len(_WORD.findall(content)) >= least or len(_DENSE.findall(content)) >= 6


def _in_address(passage: Passage) -> bool:
    return any(
        address.start() <= passage.at < address.end() for address in _URL.finditer(passage.sentence)
    )


def _fits(sentence: str, content: str, config: MemoryCaptureConfig) -> bool:
    """Return whether a sentence is long enough, and its content can be stored.

    The minimum length includes the label: "TODO: fix login" is long enough, "fix login" is not.
    Characters before the first letter do not count: of ":TODO: A:A" three letters were kept.
    """
    length = len(_BEFORE_LETTERS.sub("", sentence))
    return length >= config.min_content_length and validate_memory_content(content)[0]
