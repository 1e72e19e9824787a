"""Asides: what a sentence states in addition to what it asks or orders.

"I'm allergic to nuts, can I eat this?", "Give me a recipe, I'm vegan", "The deadline is March 5,
isn't it?". Whether an aside is worth anything is for the caller to judge: it may be small talk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agent_memory.text.phrases import NO_KIND, POINTING, any_of, pattern

_PAUSES: Final = (
    r"[,;:](?=\s)|\s\(|\s[-\u2013\u2014]+(?=\s)|(?=\u00bf)|\s(?=(?:because|since|saying)\b)"
    r"|\s(?=but (?:I|we|my|our)\b)"
)
_PAUSE: Final = pattern(_PAUSES)
_TURN: Final = pattern(
    rf"{_PAUSES}|\s(?=(?:so )?(?:(?:can|could|should|may|must|shall|do|did|am|will|would) (?:I|we)"
    r"|(?:what|which|where|when|how|why|who) (?:[\w-]+ ){0,2}?"
    r"(?:can|could|should|do|does|did|is|are|was|will|would))\b)"
)
"""Where a question may begin, a comma or not: "I'm vegan what can I eat?"."""
_LEAD: Final = (
    r"\W*(?:(?:so|and|but|hi|hello|hey|ok|okay|well|because|since|as)\b[\s,]*"
    r"|I (?:think|guess|believe|suppose) (?:that )?(?=(?:I'?m|I|we|my|our)\b))*"
)
_REASON: Final = pattern(r"\s*(?:because|since|as|considering|given)\b")
_OWN: Final = pattern(
    rf"{_LEAD}(?:(?:(?:saying|considering|given)(?: that)? )?(?:i(?!\.)|im|ive|we)\b"
    r"|(?P<mine>my|our)\b"
    r"|(?:ich|wir|(?:mein|unser)e?|je|nous|mon|ma|mes|notre|nos)\s|j')"
)
"""How a clause begins in which speakers talk about themselves."""
_WORK: Final = "(?:code|file|function|script|test|text|essay|build)"
_GLANCE: Final = (
    r"(?:look|go|try|guess|chat|thought|break|minutes?|min|sec(?:ond)?s?|moment|questions?|bugs?"
    r"|\w*errors?|issues?|problems?|ideas?|recipe)\b"
)
_NO_NOUN: Final = r"(?=\W*$| (?:here|and|with|in|at|for|since|last|now|again)\b)"
"""What follows "vegan" where it is about somebody; "vegan recipes" are not."""
_UNSAID: Final = pattern(
    rf"{_LEAD}(?:(?:just|recently|finally) )*(?="
    + any_of(
        rf"""
        (?:vegan|vegetarian|diabetic|coeliac|celiac|pregnant|retired|deaf){_NO_NOUN}
        allergic to\b|diagnosed with\b|turn(?:ed|ing) \d\d\b(?! deg)
        new to\b|(?:moved|moving) (?:here|out|in with|to (?!{POINTING}\b))
        got (?:married|divorced|engaged|promoted|fired|laid off)\b
        (?:lost|broke|quit|left|sold|hurt|tore|sprained|had|got) (?:my|our) (?!{_WORK})\w
        (?:got|bought|adopted|had) an? (?!(?:\w+ )?{_GLANCE})\w
        (?:got|bought|adopted|have) (?:two|three|four|five|\d+) (?!{_GLANCE})\w
        (?:work|live) (?:nights|shifts|alone|as|from home|with my)\b
        (?:work|live) (?:at|in|for) (?!progress\b|{POINTING}\b)\w
        """
    )
    + ")"
)
"""How such a clause begins without "I": "Got a puppy, any tips?"."""
_KIN: Final = pattern(
    r"\W*(?:wife|husband|partner|son|daughter|kids?|baby|mom|mum|dad|brother|sister|dog|cat)"
    r" (?:is|are|has|have|was|had|got|hates?|loves?|can't|won't|doesn't|needs?)\b"
)
_AIM: Final = (
    r"(?:become|quit|retire|adopt|marry|conceive|emigrate|eat|drink|sleep|smoke|lose (?:weight|\d)"
    rf"|(?:move to|learn) (?!{NO_KIND}\b)\w)"
)
"""What somebody wants for long: "I'm trying to quit smoking, any tips?"."""
_AID: Final = "(?:wheelchair|cane|walker|crutch|brace|inhaler|interpreter|transplant|operation)"
_AT_HAND: Final = (
    "(?:it|this|that|these|those|the|what|why|where|who|which|when|if|whether|your?|there|about"
    "|anything|how(?! to (?:swim|drive|cook|read|ski)))"
)
_FAULT: Final = (
    r"(?:it|this|that|these|what|why|how|(?:(?:an?|the|some|any|no|only|two|many) )?(?:"
    r"(?:[\w-]+ ){0,2}?(?:\w*errors?|\w*exceptions?|warnings?|traceback|failures?|crash(?:es)?"
    r"|error messages?|timeouts?|bugs?|squiggles?)"
    r"|(?:(?:blank|empty|white|same|strange|weird|wrong|other) )?(?:nothing|messages?|pages?"
    r"|buttons?|screens?|outputs?|results?|undefined|null|nan|\d{3}|(?-i:[A-Z\d_]{8,}))"
    r"(?=\W*$| (?:when|if|after|but|here|instead|back|(?:on|in|at) (?:it|this|that|the|line)\b))))"
)
"""What somebody gets or sees who asks about it: "I get an error", but "I get three pages a night",
"I got a message from Ann".
"""
_QUERY: Final = (
    r"(?:(?:an?|an?other|some|one|two|the|no) (?:(?:\w+ )?(?:questions?|bugs?|errors?|doubts?"
    r"|requests?|favou?rs?|ideas?|clue)|(?:(?:quick|small|big|weird|strange|new|similar|simple"
    r"|general|silly|same|following|(?-i:[A-Z])\w*) )?(?:problems?|issues?)))"
)
"""What somebody has who asks; but a heart problem is a fact."""
_PIECE: Final = "(?:name|title|example|option|word|line|sentence|paragraph|section)s?"
"""What an assistant writes: "I need five names", "I don't like paragraph two"."""
_THAT: Final = rf"(?=\W*$| {_AT_HAND}\b)"
_NEVER: Final = r"(?:do|did)n'?t (?:\w+ly |even |quite )?"
_SEEKS: Final = pattern(
    rf"{_LEAD}(?:(?:I|we)(?:'?d\b(?! rather not\b)"
    r"|(?:'?m|'?re|'?ve)?(?: (?:am|are|have|was|got|just|still|kind of|kinda|sorta"
    r"|(?!usually|only|currently)\w+ly))* (?:"
    + any_of(
        rf"""
        confused|stuck|wondering|looking(?! after)|curious|asking|thinking|sorry|wonder|hope
        would|could|should|tried|(?:{_NEVER}ask(?: for)?|forgot){_THAT}
        asked(?=\W*$| (?:before|already|(?:for )?(?:it|this|that)|you|what|why|how)\b)
        lost(?=\W*$| (?:you|in|on|here|with|at|track)\b)
        not (?:\w+ly )?(?:sure|clear|certain|following|understanding|looking|asking)
        not (?:\w+ly )?happy with{_THAT}
        trying(?! for\b| to {_AIM})
        (?:think|guess|mean|believe|suppose)(?! (?:that )?(?:I|we|my|our)\b| in\b)
        (?:{_NEVER})?want(?=\W*$| (?:an?|some|one|more|help|{_AT_HAND})\b)
        want to(?! {_AIM})
        need(?=\W*$| (?:an?(?! (?:\w+ )?{_AID})|some|one|two|more|help|advice|ideas?)\b)
        need \w+ {_PIECE}
        (?:{_NEVER})?(?:need|know|remember){_THAT}
        need to(?! (?:take(?! a screenshot\b)|avoid|eat|drink|wear|carry|sleep|lose)\b)
        not (?:seeing|getting){_THAT}
        (?:not |{_NEVER})?(?:see|get|seeing|getting|got)(?=\W*$| {_FAULT}\b)
        getting (?:confused|lost|stuck|nowhere)
        {_NEVER}(?:see|get|like|have|find|mean|follow){_THAT}
        {_NEVER}like {_PIECE}
        {_NEVER}(?:understand(?! (?-i:[A-Z]))|think|have (?:time|any ideas?|an? (?:clue|idea)))
        can'?t (?:find|figure|get(?! pregnant\b)|see(?! (?:well|colou?rs?|far)\b))
        {_QUERY}
        """
    )
    + r")\b)"
    r"|ich (?:habe eine frage|wei(?:ß|ss)|brauche|suche|möchte|sehe|danke)\b"
    r"|j(?:e |')(?:voudrais|cherche|vois|ai une question)\b"
    r"|(?:gracias|hola|perdona|no entiendo|tengo una pregunta|necesito|quiero)\b)"
)
"""How a clause begins that only leads up to the question."""
_SECRET: Final = pattern(
    r"\W*my (?:\w+ )?pass(?:word|phrase|code) is [^\s,;:]{1,64} (?:what|how|should|can|is)\b"
)
"""A secret within a question: "My password is hunter2 what should I change it to?"."""
_NEWS: Final = pattern(
    r"\W*(?:(?:can|could|will|would) you )?(?:please )?(?:tell|remind|inform)"
    r" (?:(?-i:[A-Z])\w+|(?:my|our) \w+|the team|everyone|everybody) that (?=\w+ \w)"
)
"""An order to pass on what it states: "Tell Ann that the demo moved to Friday"."""
_AS: Final = pattern(
    r"\W*as (?P<who>an? (?:(?:strict|new|young|single|retired|lifelong|type (?:1|2|one|two)) )?"
    r"(?:vegan|vegetarian|pescatarian|diabetic|coeliac|celiac|nurse|teacher|doctor|dentist|student"
    r"|pensioner|widow(?:er)?|parent|mother|father|mom|mum|dad)),"
    r" (?=(?:\w+ ){0,3}?(?:can|should|must|may|shall|do|did|am|have) (?:I|we)\b)(?!.*\byou\b)"
)
"""Who asks: "As a vegan, what can I eat?". "As a doctor, what would you do?" is a role, and "As a
vegan, would I be healthier?" supposes.
"""
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
    if _SECRET.match(question):
        return
    if (news := _NEWS.match(question)) and _FINITE.search(question, news.end()):
        yield question[news.end() :].rstrip("? ")
    if speaker := _AS.match(question):
        yield f"I am {speaker['who']}"
    clauses = _TURN.split(question)
    last = clauses[-1]
    head = question[: len(question) - len(last)].rstrip(" ,;:(-\u2013\u2014")
    if _TAG.fullmatch(last) and _NAMED.search(head) and len(head) >= _LEAST:
        yield head
        return
    for part in clauses if _REASON.match(last) else clauses[:-1]:
        clause = _with_subject(part)
        own = _OWN.match(clause)
        if own is None or _SEEKS.match(clause):
            continue
        if own["mine"] is None or len(clause.strip()) >= _LEAST:
            yield clause.rstrip("? ")
    if len(head) >= _LEAST and (
        (last.startswith("\u00bf") and not _SEEKS.match(head)) or _tells_much(head)
    ):
        yield head


def _with_subject(clause: str) -> str:
    """Return a clause with the "I" or "my" that it may have begun without."""
    if unsaid := _UNSAID.match(clause):
        return f"I {clause[unsaid.end() :]}"
    return f"my {clause.lstrip()}" if _KIN.match(clause) else clause


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
