"""What a user asks not to store, as in "Don't save this, but my brother is in rehab".

An order about data ("Don't store it, stream it", "Do not record it") is none: the request opens its
sentence, is all of it, or is followed by what the user says of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.conversation import Message, MessageRole
from agent_memory.text.phrases import any_of, pattern
from agent_memory.text.quotations import FENCED, Quotation, parted
from agent_memory.text.sentences import sentences

_KEEP: Final = "(?:save|store|remember|memori[sz]e|keep|note|record|log|write down)"
_NOT: Final = "(?:don't|do not|dont|never)"
_MEMORY: Final = "(?: (?:in|to) (?:your )?memory| anywhere)"
_THIS: Final = "(?:this|that|any of (?:this|that)|what I (?:just )?(?:said|told you))"
_REQUEST: Final = any_of(
    rf"""
    please {_NOT} (?:{_KEEP} (?:{_THIS}|it)|write (?:{_THIS}|it) down){_MEMORY}?
    {_NOT} (?!log\b)(?:{_KEEP} {_THIS}|write {_THIS} down){_MEMORY}?(?: please)?
    {_NOT} (?:{_KEEP} it|write it down)(?:{_MEMORY}(?: please)?| please)
    (?:bitte )?(?:speicher[en]?|notier[en]?|merke?) (?:dir )?(?:das|dies)(?: bitte)? nicht
    bitte (?:das )?nicht (?:speichern|merken|notieren)
    (?:s'il (?:te|vous) plaît,? )?ne (?:retiens|retenez|notez?|gardez?|mémorisez?) pas (?:ça|cela)
    (?:s'il (?:te|vous) plaît,? )?n'enregistrez? pas (?:ça|cela)
    (?:por favor,? )?no (?:guardes?|recuerdes?|anotes?|registres?|memorices?) (?:esto|eso)
    """
)
_CJK: Final = (
    r"(?:\u8bf7)?(?:\u4e0d\u8981|\u522b)"  # "(please) don't"
    r"(?:\u8bb0\u4f4f|\u8bb0\u5f55|\u4fdd\u5b58)\u8fd9(?:\u4e2a|\u4e9b|\u4ef6\u4e8b)"
    r"|(?:\u3053\u308c|\u3053\u306e(?:\u8a71|\u3053\u3068))[\u306f\u3092]?"  # "this (talk)"
    r"(?:\u899a\u3048|\u8a18\u9332\u3057|\u4fdd\u5b58\u3057)\u306a\u3044\u3067"
    r"(?:\u304f\u3060\u3055\u3044)?"
)
_OWN: Final = (
    r"(?:(?:I|my|we|our)\b|I'|(?:ich|wir|meine?|unsere?|je|nous|mon|ma|mes|notre|nos|yo|mi|mis"
    r"|soy|estoy|tengo)\b|j'|\u6211|\u79c1)"
)
_ASKS: Final = pattern(
    rf"^\W*(?:{_REQUEST}|{_CJK})"
    r"(?:,? (?:s'il (?:te|vous) pla\u00eet|por favor|bitte))?"
    r"(?:(?:, it's (?:private|personal|confidential|a secret))?\W*$"
    r"|(?P<own>(?:\s*[,:\uff0c\uff1a\u3001]\s*|\s+(?=(?:but|aber|mais|pero)\b))"
    r"(?:(?:but|aber|mais|pero)\s+)?"
    rf"{_OWN}))"
)
_OF_SELF: Final = pattern(rf"(?:^|[^\w]){_OWN}|[\u6211\u79c1]")


def without_unwanted(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """Return messages without what their user asks not to store, and how many had such a thing.

    "Don't save this, but I'm ill" leaves what stands before it, "I'm ill. Don't save this" nothing
    of its message. Alone in a message, it is about the last that the same user said of themselves,
    and about the reply to it. Places stay: nothing is left of the text of a message.
    """
    left = list(messages)
    changed: set[int] = set()
    for place, message in enumerate(messages):
        if message.role is not MessageRole.USER or (kept := _kept(message.text)) is None:
            continue
        own = [kept]
        if len(sentences(message.text)) == 1 and not _is_followed(message.text):
            before = [
                n
                for n in range(place)
                if messages[n].role is MessageRole.USER and messages[n].name == message.name
            ]
            if before and _OF_SELF.search(messages[before[-1]].text):
                own = [""] * (place - before[-1]) + own
        for n, text in zip(range(place + 1 - len(own), place + 1), own, strict=True):
            is_others = messages[n].role is MessageRole.USER and messages[n].name != message.name
            if not is_others:
                left[n] = left[n].model_copy(update={"content": text})
                changed.add(n)
    return left, len(changed)


def _kept(text: str) -> str | None:
    """Return what is left of a text with such a request; ``None`` if it has none."""
    if FENCED.search(text) or any(isinstance(part, Quotation) for part in parted(text)):
        return None
    parts = sentences(text)
    for place, part in enumerate(parts):
        if (asks := _ASKS.match(part)) is not None:
            return " ".join(parts[:place]) if asks["own"] else ""
    return None


def _is_followed(text: str) -> bool:
    asks = _ASKS.match(text)
    return asks is not None and asks["own"] is not None
