"""What a user tells a coding agent that holds from now on: orders, tastes, corrections of facts.

A task for now ("Fix all tests", "Use the other file for now") is none of these. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agent_memory.text.capture_words import has_ordering_word
from agent_memory.text.phrases import pattern
from agent_memory.text.sentences import sentence_spans
from agent_memory.text.small_talk import opening_end
from agent_memory.text.speech_acts import is_asking, is_instruction, is_order

_JUDGED: Final = 1_000
_READ: Final = 10_000
_SHORTEST: Final = 8
_LETTER: Final = re.compile(r"[^\W\d_]")
_FOR_NOW: Final = pattern(
    r"^\W*(?:never mind|(?:always|never) (?:the|an?|my|your))\b"
    r"|\b(?:for (?:now|the moment|a (?:moment|second|minute|bit)|today|(?:this"
    r"|that) \w+)"
    r"|right now|at the moment|yet|today|tomorrow|tonight|just (?:this|once|for)|once\W*$"
    r"|this (?:time|once)|(?<!over and over )again|line \d+"
    r"|(?:it|this|these|those|them|here)\b(?!'s best)(?! (?:repo\w*|project|codebase|package)\b)"
    r"|that(?= (?:file|function|test|one|class|method|branch|line|part|way)\b|\W*$)"
    r"|(?:(?<!\w )|(?<=and )|(?<=but )|(?<=if )|(?<=when )|(?<=sure )|(?<=because ))"
    r"that(?= (?:is|was|looks)\b)"
    r"|(?:the )?(?:first|second|third|last|other|same|latter|former) (?:one|option|approach|way"
    r"|version|file|function|test|idea|branch|solution)|you(?:'re| are) right)\b"
)
_ALWAYS: Final = (
    r"(?:always|never|from now on|going forward|in (?:the )?future|whenever|by default|everywhere"
    r"|(?:every|each) time|when(?:ever)? you|before (?:you|every|each|any|\w+ing)"
    r"|after (?:you|every|each|any|\w+ing)|unless (?:I|you)|at all times)\b"
)
_LASTS: Final = pattern(rf"\b{_ALWAYS}")
_PLEASE: Final = r"^\W*(?:(?:please|also|and|so|ok(?:ay)?|just|but|then|kindly)[\s,]+)*"
_OF_ONE: Final = r"(?:the|it|this|that|these|those|me|us|an?|my|your|any (?:of|more))\b"
# Orders whose verb already says how things are to be done, not what is to be done now.
_MANNER: Final = pattern(
    rf"{_PLEASE}(?:(?:prefer|avoid)\s+(?!{_OF_ONE})\w"
    r"|(?:don't|do not)\s+(?!worry|bother|forget|mind|panic|stop|wait|give up|tell|get|be|know"
    r"|think"
    r"|understand|you)\w+ \w"
    rf"|stop \w+ing\s+(?!{_OF_ONE})\w|keep\s+(?!{_OF_ONE}|\w+ing\b|in mind\b|up\b|on\b)\w"
    rf"|use\s+(?!{_OF_ONE}|option\b)(?:[\w./<>@#+-]++\s++){{0,3}}[\w./<>@#+-]++\W*$"
    r"|use\s+(?!.*\bto \w+ (?!use\b))(?:.*\b(?:instead of|rather than|over|not)\s+(?!the\b|an?\b"
    r"|this\b)\w"
    r"|(?!an? |the )[^,;.]{1,40}? (?:for|in|with|as|on|when) (?!the (?:\w+ )?(?:run|loop"
    r"|fix)\b)\w))"
)
_RULE: Final = pattern(
    rf"{_PLEASE}(?:you (?:should|must|need to|have to|may|can)(?: only| not|n't)?\b.*\b{_ALWAYS}"
    r"|you (?:must|may) (?:not|only)\b"
    r"|(?:all|every|each|no) (?!of |good|worries|problem|thanks|done)(?:[\w/-]+ ){1,5}?"
    r"(?:must|should|shall|may|needs?|have to|has to)\b"
    r"|(?:whenever|every time|each time|(?:when|before|after|if) you)\b"
    r"(?!'|\s+(?:are|have|get|start|begin|continue|go|do|finish|can)\b)[^,]{3,80}, \w"
    rf"|only (?:use|commit|push|merge|import|log|support|deploy|mock|ask|add)\s+(?!{_OF_ONE})\w"
    r"|(?:from now on|going forward|in (?:the )?future),? \w"
    r"|(?:in (?:this|our) (?:repo\w*|project|codebase)\b,? )we (?!should|need|have|want|are)\w+ \w)"
)
_PAST: Final = (
    r"(?:\w+ed|got|had|saw|knew|thought|did|were|was|went|found|made|came|said|left|ran|wrote)\b"
)
_TASTE: Final = pattern(
    rf"{_PLEASE}(?:I|we)(?: (?:really|much|strongly|always|generally|usually|absolutely))?"
    r" (?:prefer (?!if\b|that\b|to (?:see|look|wait|do|start)\b)\w"
    r"|(?:like|love|hate|dislike|don't like|can't stand|do not like) (?!the\b|how\b|what\b"
    r"|your\b|to\b"
    r"|where\b|when\b)\w|(?:want|expect) (?!to\b)(?:all|every|each|no|you to (?:always|never))\b"
    rf"|(?:only|never|always|no longer|don't|do not) (?!{_PAST}|want|need|know|think|see|have|get"
    r"|understand|care|like|remember|believe|mind)\w+ \w"
    r"|use (?!to\b)[^.?]{2,60}?(?:,? not\b| for\b| in\b| instead of\b| rather than\b"
    r"| everywhere\b))"
)
_TELLS: Final = (
    r"(?:(?:is|are|isn't|aren't)(?! (?:ok|fine|good|wrong|right|broken|failing|down|green|red|empty"
    r"|just|really|very|so|too|better|worse|done|missing|a|an|there|still|correct)\b)"
    r"|(?:runs?|listens?|lives?|uses?|targets?|expires?|takes?|needs?|goes|go|points?|stores?"
    r"|starts?"
    r"|belongs?|depends?|requires?|supports?|returns?|accepts?|reads?|deploys?|sits?|owns?|holds?"
    r"|comes?|defaults?|deploy|release|build|host|test|ship|work)(?! (?:fine|well|again"
    r"|now\W*$)\b))\b"
)
_NOUN: Final = r"(?!I\b|you\b|it\b|that\b|this\b|there\b|let|what\b|he\b|she\b)"
_CORRECTED: Final = pattern(
    r"^\W*(?:actually|correction|no|nope|wrong|sorry|update|not \w+)\s*(?:[,:\u2013\u2014-]\s*"
    r"|(?<=y)\s+)"
    rf"{_NOUN}(?:[^\s,;:?]+ ){{1,6}}?{_TELLS} \S"
    rf"|^\W*{_NOUN}(?:[^\s,;:?]+ ){{1,6}}?{_TELLS} [^,;?]{{2,60}}, (?:and )?not \S"
    rf"|^\W*{_NOUN}(?:[^\s,;:?]+ ){{1,5}}?(?:now (?:runs?|lives?|uses?|targets?|listens?"
    rf"|needs?|goes"
    r"|belongs?|points?)|(?:runs?|lives?|uses?|targets?|listens?|needs?"
    r"|points?) [^,;?]{2,60} now\W*$"
    r"|(?:is|are|was|were|has been|have been) (?:moved|renamed|postponed|pushed|cancelled"
    r"|replaced by"
    r"|deprecated)\b)"
    r"|^\W*we(?:'ve| have)? (?:switched|migrated|moved) (?:[^\s,;:?]+ ){0,4}?"
    r"from [^,;?]{2,60}? to \S"
)
_CONDITION: Final = pattern(
    r"^\W*(?:whenever|every time|each time|(?:when|before|after|if) you)\b[^,]*,"
)
_CLAUSE_END: Final = re.compile(r"[,;:]\s+|\s[-\u2013\u2014]+\s")
_ABROAD: Final = pattern(
    r"^\W*(?:bitte |s'il te pla\u00eet,? |por favor,? )?(?:"
    r"[^,;:?]{0,60}\bbitte\b[^,;:?]{0,60}?\b(?:nie|niemals|stets|immer(?! (?:noch|wieder|mehr)))\b"
    r"|[^\W\d_]+e? (?:immer|nie|niemals|stets)\b(?!.*\bich\b)"
    r"|(?:ab jetzt|k\u00fcnftig|in zukunft)\b"
    r"|(?:verwende|benutze|nutze|nimm)\b.*\b(?:statt|anstatt|anstelle)\b"
    r"|(?:n'|ne )?[^\W\d_]+(?:e|ez|s) (?:toujours|jamais)\b|(?:d\u00e9sormais|dor\u00e9navant)\b"
    r"|utilisez?\b.*\b(?:au lieu d|plut\u00f4t qu)"
    r"|[^\W\d_]+[ae] siempre\b|(?:siempre|nunca) \w+|(?:a partir de ahora|de ahora en adelante)\b"
    r"|(?:usa|utiliza)\b.*\b(?:en lugar de|en vez de)\b)"
)


def standing_orders(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the first letter of each sentence that holds from now on.

    Only the first 10,000 characters count: what is longer was pasted.
    """
    text = text[:_READ]
    if not has_ordering_word(text):
        return
    for start, end in sentence_spans(text):
        letter = _LETTER.search(text, start, end)
        if letter is None or end - letter.start() < _SHORTEST:
            continue
        if holds_from_now_on(text[letter.start() : end]):
            yield letter.span()


def holds_from_now_on(sentence: str) -> bool:
    """Return whether a user's sentence is a standing order, a taste or a correction of a fact."""
    head = sentence[:_JUDGED]
    if is_asking(head):
        return False
    texts = tuple(dict.fromkeys((head, head[opening_end(head) :].lstrip())))
    if any(map(_is_correction, texts)):
        return True
    condition = _CONDITION.match(head)
    if _FOR_NOW.search(condition[0] if condition else head):
        return False
    return any(
        _is_order(text) or any(form.match(text) for form in (_RULE, _TASTE, _ABROAD))
        for text in texts
    )


def _is_correction(text: str) -> bool:
    """Return whether a sentence corrects a fact; what follows the fact may speak of now.

    An order after it tells that the fact is about the task: "No, the file is there, open it".
    """
    match = _CORRECTED.match(text)
    if match is None:
        return False
    end = _CLAUSE_END.search(text, match.end())
    is_task = end is not None and is_order(text[end.end() :])
    return _FOR_NOW.search(text[: end.start() if end and not is_task else None]) is None


def _is_order(text: str) -> bool:
    if not is_instruction(text):
        return False
    return _LASTS.search(text) is not None or _MANNER.match(text) is not None
