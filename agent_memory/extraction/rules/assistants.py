"""What an assistant says that is not kept as true: what it guesses, and what its user denies.

"Maybe your router is broken" is no fact, nor is "Your question is a good one". "I saved your
address as 5 Oak Road" is none if the user's next words are "that's wrong", and is kept together
with them if they say something: "no, that's my old one".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from agent_memory.extraction.rules.changes import NO
from agent_memory.extraction.rules.corrections import is_correction, offers_help
from agent_memory.extraction.rules.values import DATE, TIME
from agent_memory.text.phrases import any_of, pattern, words_of
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_asking
from agent_memory.text.stems import stems

# Guesses ------------------------------------------------------------------------------------

_CLAUSE_JOINT: Final = re.compile(r"[,;:]\s|\s(?:but|[-\u2013\u2014])\s")
_UNSURE: Final = any_of(
    r"""
    maybe|perhaps|possibly|probably|presumably|apparently|(?:un)?likely|might|(?-i:may)(?! \d)
    could|would|if|unless|whether|assum(?:e|es|ed|ing)|guess(?:ing)?|suppos(?:e|ing)|think|believe
    suspect|imagine|wonder|hope|hoping|seems?|seemingly|appears?
    (?:sounds?|looks?|feels?) (?:like|as)
    """
)
_IS_UNSURE: Final = pattern(rf"\b{_UNSURE}\b")
_HAS_CONDITION: Final = pattern(
    r"\b(?:when|whenever|once|until|in case|as long as|(?:make|be) sure|check|ensure|verify)\b"
)
"""What makes no statement of what is the user's: "Make sure your phone is charged"."""
_IS_UNSURE_NEXT: Final = pattern(rf"\W+(?:(?:very|most|quite) )?{_UNSURE}\b")
_IS_UNSURE_LAST: Final = pattern(
    r"[,\u2013\u2014-]\s*(?:(?:or )?(?:maybe|perhaps|probably|possibly|presumably|apparently)"
    r"|I (?:think|guess|believe|assume|suppose|imagine)|it seems)\W*$"
)
_IS_CONDITIONAL: Final = pattern(r"\W*(?:if|unless|when|whenever|in case|assuming|depending)\b")
_IS_EXAMPLE: Final = pattern(
    r"\W*(?:(?P<may_be_true>(?:for|as an) (?:example|instance)|e\.g\.)|(?:let's )?say"
    r"|in (?:this|that|the|our) (?:(?!current)\w+ )?(?:example|exercise|scenario))"
    r"(?:,|:|(?= your\b))"
)
"""How a sentence begins that makes up what is "yours": "For example, your name is Bob"."""
_HAS_DATE: Final = pattern(rf"\b(?:{DATE}|{TIME}|at \d{{1,2}})\b")
_IS_OF_USER: Final = pattern(r"\byour?\b")
_OFFERS: Final = pattern(
    r"\bif (?:you|that|this|it)(?:'d| would)? (?:want|like|wish|prefer|agree|works?|helps?)\b"
)
_IS_TO_COME: Final = pattern(r"(?:I|we)(?:'ll| will)\b")
_IS_OF_THE_TALK: Final = pattern(
    r"your (?:\w+ ){0,2}"
    + words_of(
        """
        questions? requests? answers? points? ideas? concerns? options? choices? bet approach
        reasoning understanding assumptions? observations? guess instincts? intuition suggestions?
        feedback thinking explanation interpretation logic arguments? issues? problems? errors?
        mistakes? feelings? frustration solutions?
        """
    )
    + r"\b"
)
"""What is said here, and comments on it: "your question", "your best option"."""
_IS_OF_THE_WORK: Final = pattern(
    r"your (?:\w+ ){0,2}"
    + words_of(
        "code functions? query queries script loops? regex snippet essay draft text sentences?"
        " paragraphs? formula implementation syntax prompt output"
    )
    + r" (?:is|are|was|will be)\b(?! (?:\S+ )?\S*\d)"
)
"""What is worked on here; a code that is "4711" is a fact."""


def is_guess(sentence: str, claim: re.Match[str], sentence_before: str) -> bool:
    """Return whether an assistant is not sure of what it says in a sentence, or only comments.

    ``claim`` is the part of the sentence that would last: "your budget is", "I booked".
    """
    before, after = sentence[: claim.start()], sentence[claim.end() :]
    lead = _CLAUSE_JOINT.split(before)[-1]
    if _IS_UNSURE.search(lead):
        return True
    if not claim[0].lower().startswith("your"):
        return _IS_TO_COME.match(claim[0]) is not None and _OFFERS.search(sentence) is not None
    if is_asking(sentence) or _HAS_CONDITION.search(lead) or _is_example(sentence, sentence_before):
        return True
    if _IS_OF_THE_TALK.match(claim[0]) or _IS_OF_THE_WORK.match(sentence, claim.start()):
        return True
    # "If you need to call them, your order number is 4711" holds whatever you need.
    if _IS_CONDITIONAL.match(before) and not any(letter.isdigit() for letter in after):
        return True
    return bool(_IS_UNSURE_NEXT.match(after) or _IS_UNSURE_LAST.search(after))


def _is_example(sentence: str, before: str) -> bool:
    """Return whether a sentence makes something up, and is no example of what is true.

    "You have two meetings. For example, your review is on May 5."
    """
    begins = _IS_EXAMPLE.match(sentence)
    if begins is None or not begins["may_be_true"]:
        return begins is not None
    return not (_HAS_DATE.search(sentence) or _IS_OF_USER.search(before))


# Denials ------------------------------------------------------------------------------------

_THAT: Final = r"(?:that|this|it)"
_IS_NOT: Final = r"(?:'s not|s not| is not| isn't| was not| wasn't)"
_SO: Final = r"(?:quite|really|exactly|entirely|all|at all|true|right|correct|mine|me|it|so)"
_OPENING: Final = r"\W*(?:(?:sorry|wait|actually|hm+|um|uh|oh|ah|well|please)\b\W*)*"
_FALSE: Final = "(?:wrong|incorrect|false|untrue|falsch|faux)"
_ITS_END: Final = r"(?=\W*$| (?:that|this|it|any|an?|for|you to)\b)"
_DENIES: Final = pattern(
    _OPENING
    + any_of(
        rf"""
        (?P<no>{NO}|nope\b|nah\b|nein\b|non\b)
        {_FALSE}\b(?=\s*[,.;:!\u2013\u2014-]|\s*$)
        not {_SO}\b(?! sure)
        {_THAT}(?:'s|s| is| was) (?:(?:all|just|completely|totally|still|actually) )*{_FALSE}\b
        {_THAT}{_IS_NOT}(?: {_SO})*(?=\s*[,.;:!\u2013\u2014-]|\s*$)
        (?:please )?(?:cancel|undo|delete|remove) (?:{_THAT}|the (?:booking|reservation|order))\b
        {_THAT}{_IS_NOT} (?:what|who|where|when|my)\b
        you(?:'re| are) (?:wrong|mistaken)\b
        I (?:never|didn't|did not) (?:asked?|said|say|want(?:ed)?|order(?:ed)?|mean|meant){_ITS_END}
        das stimmt nicht|stimmt nicht
        """
    )
)
_DENIES_NOTHING: Final = pattern(
    rf"{_OPENING}(?:no|nope|nah|nein|non)\b\W*(?:"
    + any_of(
        r"""
        problem|worries|thanks?\b|thank you|thx|danke|merci|need\b|rush\b|idea\b|more\b|nothing
        (?:that|this|it|all|everything)(?:'s|s| is)? (?:all|fine|ok|okay|good|great|perfect|right)
        (?:that|it)(?:'s|s| is) (?:it|correct|everything|enough|clear)|I(?:'m| am) (?:good|fine|ok)
        (?:I )?(?:don't|do not) (?:need|have|want|think)|I have no\b|I like\b
        I(?:'m| am) (?:all|happy)|all (?:good|set)|just that|continue|go ahead|perfect|great|good
        (?:(?:it|that|this) )?(?:looks?|sounds?|works?|suits?)\b|(?:leave|keep) (?:it|that)|next\b
        not (?:for now|at the moment)|way\b|really\b|you(?:'re| are) right|gracias|alles gut|passt
        c'est (?:bon|parfait)
        """
    )
    + r")"
)
"""A "no" that thanks, or accepts."""
_NAMES_NOTHING: Final = pattern(
    rf"(?:\W*\b(?:{_SO}|{_FALSE}|{_THAT}(?:'s|s)?|"
    + words_of(
        """
        no nope nah nein non not is was isn't wasn't cancel undo delete remove forget stop please
        sorry actually wait hm+ um uh oh ah well thanks thank you you're are mistaken just all the
        booking reservation order das stimmt nicht
        """
    )
    + r")\b)*\W*"
)
_ASKS_WHETHER_SO: Final = pattern(
    rf"(?:(?:is|was|does) {_THAT} (?:\w+ )?(?:right|correct|ok|okay|fine|work|good)"
    r"|right|correct|ok|okay|sounds? (?:right|good)|did I get (?:that|it|this) right)\W*"
)


class Denial(NamedTuple):
    """A denial of what was claimed: what is kept of both (``""``: nothing), and the other words."""

    kept: str
    rest: str


def denial_of(
    claims: Sequence[str], message: str, reply: str, *, stands_alone: Callable[[str], bool]
) -> Denial | None:
    """Return how a reply denies what an assistant claimed in a message, ``None`` if it does not.

    "No" does not, if the message ends with a question of its own ("Shall I book a taxi too?").
    A sentence that says enough by itself (``stands_alone``) takes the place of what it denies.
    """
    begins = _DENIES.match(reply)
    is_denied = begins is not None and not _DENIES_NOTHING.match(reply)
    if not (claims and (is_denied or is_correction(reply))):
        return None
    last = next(reversed(sentences(message)), "")
    is_asked = (is_asking(last) or offers_help(last)) and not _ASKS_WHETHER_SO.fullmatch(last)
    if is_asked and (begins is None or (begins["no"] and not _denies(reply[begins.end() :]))):
        return None
    words, *rest = sentences(reply)
    if stands_alone(words):
        # It denies one claim at most, and none that it does not speak of.
        is_of_claim = len(claims) == 1 and not stems(claims[0]).isdisjoint(stems(words))
        return Denial("" if is_of_claim else " ".join(claims), reply)
    if _NAMES_NOTHING.fullmatch(words) and rest and not is_asking(rest[0]):
        if stands_alone(rest[0]):
            return Denial("", "\n".join(rest))
        words = f"{words} {rest.pop(0)}"  # "No. That's my old one."
    # Which of several claims is denied, or whether that of the question, nobody says.
    is_plain = _NAMES_NOTHING.fullmatch(words) and len(claims) == 1 and not is_asked
    return Denial("" if is_plain else " ".join((*claims, words)), "\n".join(rest))


def _denies(text: str) -> bool:
    return _DENIES.match(text.lstrip(" ,.!")) is not None
