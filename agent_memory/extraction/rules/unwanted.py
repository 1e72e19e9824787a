"""What a user asks not to store: "Don't save this, but my brother is in rehab".

Only what follows "but" in the same sentence is surely meant. "Please don't remember that" may be
about anything, a file too: what it is about stays, and the user is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.extraction.rules.corrections import offers_help
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.text.phrases import any_of, pattern
from agent_memory.text.quotations import FENCED, parted
from agent_memory.text.sentences import sentence_spans, sentences
from agent_memory.text.speech_acts import is_asking

_PLEASE: Final = "(?:please|bitte|por favor|s'il (?:te|vous) pla\u00eet)"
_REQUEST: Final = rf"\W*(?:{_PLEASE},? )?" + any_of(r"""
    (?:don't|do not|dont) (?:save|store|remember|memori[sz]e|keep|note) (?:this|that)
    (?:speicher[en]?|notier[en]?|merke?) (?:dir )?(?:das|dies)(?: bitte)? nicht
    ne (?:retiens|retenez|notez?|gardez?|mémorisez?) pas (?:ça|cela)|n'enregistrez? pas (?:ça|cela)
    no (?:guardes?|recuerdes?|anotes?|memorices?) (?:esto|eso)
    """)
_IS_ALL: Final = pattern(rf"{_REQUEST}(?:,? {_PLEASE})?\W*")
_IS_BESIDE: Final = pattern(
    rf"{_REQUEST},? (?:but|aber|pero|mais) (?:(?:I|my|ich|meine?|je|mon|ma|mes|yo|mi|mis"
    r"|soy|estoy|tengo)\b|j')"
)
_KEEPS: Final = pattern(
    r"\b(?:sav|stor[ei]|rememb|memor|keep|kept|not(?:e|ing)|record|speicher|merk|enreg|guard|anot)"
)
"""What "that" may be: "I'll save Oak Street 6.", "Don't save that, but my street is …"."""
_MAY_BE_UNWANTED: Final = (
    "extraction: a user may have asked not to store what they said: it is stored, until delete or"
    " erase removes it"
)


def without_unwanted(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """Return messages without what their users ask not to store, and what to tell about it."""
    left = list(messages)
    problems: set[str] = set()
    reply_to = ""
    for place, message in enumerate(messages):
        text = message.text
        if message.role is MessageRole.ASSISTANT:
            reply_to = text
        parts = [text[begin:end] for begin, end in sentence_spans(text)]
        asked = {part: problem for part in parts if (problem := _problem(part, reply_to))}
        is_of_user = message.role is MessageRole.USER
        if asked and is_of_user and parted(text) == [text] and not FENCED.search(text):
            kept = "".join(part for part in parts if part not in asked).strip()
            left[place] = message.model_copy(update={"content": kept})
            problems.update(asked.values())
    return left, sorted(problems)


def _problem(sentence: str, reply_to: str) -> str | None:
    """Return what to tell about a sentence that is left out; ``None`` for any other."""
    if _IS_BESIDE.match(sentence) and not _KEEPS.search(reply_to):
        return "extraction: a sentence was left out: a user asked not to store what it says"
    if not _IS_ALL.fullmatch(sentence):
        return None
    last = next(reversed(sentences(reply_to)), "")
    return None if is_asking(last) or offers_help(last) else _MAY_BE_UNWANTED
