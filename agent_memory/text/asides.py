"""Asides: what a sentence states in addition to what it asks or orders.

"I'm allergic to nuts, can I eat this?", "Give me a recipe, I'm vegan", "The deadline is March 5,
isn't it?". Whether an aside is worth anything is for the caller to judge: it may be small talk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agent_memory.text.phrases import pattern, words_of

_PAUSE: Final = re.compile(
    r"[,;:](?=\s)|\s\(|\s[-\u2013\u2014]+(?=\s)|(?=\u00bf)|\s(?=(?:because|since|saying)\b)"
)
_LEAD: Final = (
    r"\W*(?:" + words_of("so and but hi hello hey ok okay well because since as") + r"\b[\s,]*)*"
)
_REASON: Final = pattern(r"\s*(?:because|since|as|considering|given)\b")
_OWN: Final = pattern(
    rf"{_LEAD}(?:(?:(?:saying|considering|given)(?: that)? )?(?:i(?!\.)|we)\b|(?P<mine>my|our)\b"
    r"|(?:ich|wir|(?:mein|unser)e?|je|nous|mon|ma|mes|notre|nos)\s|j')"
)
"""How a clause begins in which speakers talk about themselves."""
_SEEKS: Final = pattern(
    rf"{_LEAD}(?:(?:I|we)(?:'d\b"
    r"|(?:'m|'re|'ve)?(?: (?:am|are|have|was|just|really|still|kind of|kinda|sorta))*"
    r" (?:not|confused|lost|stuck|trying|wondering|looking|curious|getting|seeing|asking|thinking"
    r"|sorry|wonder|think|guess|mean|hope|want|need|would|could|should|tried|see|get|know|don't"
    r"|didn't|can't (?:find|see|get|figure)|no (?:idea|clue)"
    r"|(?:an?|an?other|some|one|two|the) (?:\w+ )?(?:questions?|problems?|issues?|bugs?|errors?"
    r"|doubts?|requests?|favou?rs?|ideas?))\b)"
    r"|ich (?:habe eine frage|wei(?:ß|ss)|brauche|suche|möchte|sehe|danke)\b"
    r"|j(?:e |')(?:voudrais|cherche|vois|ai une question)\b"
    r"|(?:gracias|hola|perdona|no entiendo|tengo una pregunta|necesito|quiero)\b)"
)
"""How a clause begins that only leads up to the question."""
_NEWS: Final = pattern(
    r"\W*(?:please )?(?:tell|remind|inform) (?:(?-i:[A-Z])\w+|(?:my|our) \w+) that (?=\w+ \w)"
)
"""An order to pass on what it states: "Tell Ann that the demo moved to Friday"."""
_FINITE: Final = pattern(
    r"\b(?:is|are|has|have|was|were|will|can|cannot|must|do|does|did|need|want|prefer|hate|love"
    r"|live|quit|left|got|came|went|took|became|began"
    r"|[a-z]+ed(?= \w)|\w+n't|[a-z]+[^\Ws]s(?= \w)(?! (?:and|or|of|in|at|with|from)\b))\b"
)
_OF_OTHERS: Final = pattern(
    r"\W*(?:(?:because|since|as) )?"
    r"(?:(?P<they>s?he|they|it)(?:'s|'re)?\b|(?:the|(?-i:[A-Z][\w-]+))\s+\w)"
)
"""How a clause begins that gives a reason: "Write it in Rust, the client forbids C++"."""
_SOMEBODY: Final = pattern(
    r"\b(?:my|our) (?!code|file|function|script|test|text|essay|build)\w|\s(?-i:[A-Z])\w"
)
"""Whom the next clause may tell about: "Suggest a gift for my wife, she turns 40"."""
_EXPLAINED: Final = pattern(
    r"\W*(?:fix|debug|change|remove|revert|replace|rename|move|check|undo)\b[^:]+:\s+(?=\w)"
    r"(?!.*\b(?:\w*error|\w*exception|undefined|traceback)\b)"
)
"""An order that explains what it is about: "Fix the login bug: sessions expire …"."""
_TAG: Final = pattern(
    r"\s*(?:(?:is|are|was|were|do|does|did|has|have|will|can)n't \w+"
    r"|(?:is|are) (?:that|this|it)(?: still)? (?:right|fine|ok|okay|correct|true|so)"
    r"|correct|right|ok|okay|remember|yes)\s*\?"
)
"""A tag question, which asks to confirm the rest."""
_NAMED: Final = re.compile(r"\d|\s(?!I\b)[A-Z]")
_EXACT: Final = re.compile(r"\d[.:/-]\d|[$\u20ac\u00a3] ?\d")
_WORDS_TOLD: Final = 9
"""Words that a sentence leading to a question needs to tell something: "I need a regex for US
phones" has too few.
"""
_EXPLAINING_WORDS: Final = 4
"""Words of an explanation: "Fix the login: sessions expire after 5 minutes"."""
_LEAST: Final = 10
"""The fewest characters of an aside: "My dog, is he ill?" has none."""


def asides_of_question(question: str) -> Iterator[str]:
    """Yield what a question states in addition to what it asks."""
    clauses = _PAUSE.split(question)
    last = clauses[-1]
    head = question[: len(question) - len(last)].rstrip(" ,;:(-\u2013\u2014")
    if _TAG.fullmatch(last) and _NAMED.search(head) and len(head) >= _LEAST:
        yield head
        return
    for clause in clauses if _REASON.match(last) else clauses[:-1]:
        own = _OWN.match(clause)
        if own is None or _SEEKS.match(clause):
            continue
        if own["mine"] is None or len(clause.strip()) >= _LEAST:
            yield clause.rstrip("? ")
    if len(head) >= _LEAST and (
        (last.startswith("\u00bf") and not _SEEKS.match(head)) or _tells_much(head)
    ):
        yield head


def _tells_much(head: str) -> bool:
    """Return whether what leads to a question tells something all the same."""
    if not _OWN.match(head) or not _NAMED.search(head):
        return False
    return len(head.split()) >= _WORDS_TOLD or _EXACT.search(head) is not None


def asides_of_order(order: str) -> Iterator[str]:
    """Yield what an order states after what it orders."""
    if news := _NEWS.match(order):
        yield order[news.end() :]
    explained = _EXPLAINED.match(order)
    if explained and len(order[explained.end() :].split()) >= _EXPLAINING_WORDS:
        yield order[explained.end() :]
    first, *clauses = _PAUSE.split(order)
    is_about_somebody = _SOMEBODY.search(first) is not None
    for clause in clauses:
        own = _OWN.match(clause)
        if own is None:
            if _gives_reason(clause, is_about_somebody=is_about_somebody):
                yield clause
        elif not _SEEKS.match(clause) and (
            own["mine"] is None or _FINITE.search(clause, own.end())
        ):
            yield clause


def _gives_reason(clause: str, *, is_about_somebody: bool) -> bool:
    """Return whether a clause tells something of others than the speaker, by name or number."""
    others = _OF_OTHERS.match(clause)
    if others is None or _FINITE.search(clause, others.start("they")) is None:
        return False
    return is_about_somebody if others["they"] else _NAMED.search(clause) is not None
