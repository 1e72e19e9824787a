"""What a sentence does: it asks, orders, greets, reacts, supposes, denies, asks to remember.

Both engines that decide which sentence is worth keeping, capture and the extraction of facts, go by
this. Pure; the first 1,000 characters of a sentence tell: what goes on for longer is none.
"""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = re.IGNORECASE
_JUDGED: Final = 1_000
"""Characters of a sentence that it is judged by."""


def _any(phrases: str) -> str:
    """Return a pattern for any of some phrases, one a line."""
    return "(?:" + "|".join(line.strip() for line in phrases.strip().splitlines()) + ")"


def _words(words: str) -> str:
    return "(?:" + "|".join(words.split()) + ")"


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern in which an apostrophe may be of either kind."""
    return re.compile(text.replace("'", "['\u2019]"), _FLAGS)


_OPENER: Final = (
    r"^\W*(?:"
    + _words("so and but oh hey wow well now please then ok okay also hi")
    + r"[\s,!.]+)*"
)
_ASKING: Final = _any(
    r"""
    (?:do|did|are|were|have|can|could|would|will) you\b
    (?:what|how|why|where|who|which)(?:'?s|\s(?:is|are|was|do|did|does|about|have|would|can))\b
    """
)
_INTERROGATIVE: Final = _pattern(
    r"^\W*(?:why|what|how|who|which|where|when|do|does|did|is|are|was|were|can|could|should|would"
    r"|have|has|shall|may)\b[^.?]*[?\uff1f]"
)
_QUESTION: Final = _pattern(
    r"[?\uff1f][\s\"\x27\u201d)\]*_]*$"
    r"|[\u5417\u5462\u5427\u304b][\u3002\s]*$"  # particles that ask, in Chinese and Japanese
    rf"|{_OPENER}{_ASKING}"
)
# A question that tells something all the same.
_TELLING: Final = _pattern(
    r"\b(?:did I (?:tell|mention)|have I told|remember (?:when|that) (?:I|we)"
    r"|you know (?:that )?I)\b"
)
_ORDERS: Final = _words(
    """
    write rewrite make give show tell explain summarise summarize translate generate create list
    find help fix add use run check look describe compare convert draft suggest recommend stay enjoy
    send calculate implement debug refactor continue
    """
)
_ORDER: Final = _pattern(
    rf"{_OPENER}(?:(?:can|could|would|will) you\s+(?:please\s+)?)?"
    rf"(?:{_ORDERS}|let me know|keep (?:me|it|up)|take care|have (?:a|fun)|go on|try again)\b"
)
_KEPT_ORDER: Final = _pattern(
    r"^\W*(?:please\s+)?(?:remember|don't forget|do not forget|note|forget|keep in mind)\b"
)
_ASKED_TO_REMEMBER: Final = _pattern(
    r"\b(?:can|could|will|would) you (?:please |also )?remember\s+(?:that|to|this:)"
)
_FORGET: Final = _pattern(
    r"^\W*(?:[\w-]{1,40}:\s+)?(?:(?:please|can you|could you|ok|actually)[\s,]+)*"
    r"(?:forget|delete|erase|remove|stop remembering)\b(?!\W+(?:to\b|about it|it\b))"
    r"|^\W*+\w\S*+(?: \S++)? (?:asks?|asked|wants?|wanted|requests?|requested)"
    r" (?:\w+ )?(?:to|that)\b"
    r".{0,60}\b(?:forget|forgotten|delete|deleted|erase|erased|remove|removed)\b"
)
LEAD: Final = (
    r"^\W*(?:(?:also|and|so|ok|please|by the way|one more thing"
    r"|(?:can|could|will|would) you)[\s,:]+)*"
)
"""What may stand before an order: "Also, please …"."""
_LABEL: Final = _pattern(
    rf"{LEAD}(?:remember|don't forget|do not forget|keep in mind|note)(?:\s+that\b|\s+this:|:)\s*"
)
_SUPPOSED: Final = _pattern(
    r"\b(?:if|unless|would|could|might|may|maybe|perhaps|suppose|imagine|wish|hopes?|want(?:s|ed)?"
    r"|plan|used to)\b"
)
# Of names, "No Doubt" denies nothing.
_DENIED: Final = _pattern(
    r"\b(?:(?-i:no)|not|never|nobody|none|neither|nor|hardly|no longer|\w+n't)\b"
)

_INTENSE: Final = _words(
    "so really very pretty such a an too just truly absolutely quite all totally super"
)
_JUDGEMENT: Final = _words(
    """
    good great nice cool awesome amazing wonderful fantastic incredible lovely beautiful sweet
    interesting funny true right fine ok okay sad tough hard rough terrible awful crazy wild fun
    inspiring exciting perfect impressive gorgeous stunning adorable cute delicious brilliant
    excellent fascinating best worst it correct helpful relatable neat special important yummy
    understandable news idea point
    """
)
_FEELING: Final = _words("glad happy sorry proud excited thrilled")
_LEARN: Final = _words("hear know see")
_ABOUT: Final = "(?:that |for |of |about )*"
_IS: Final = r"(?:'?s|\s(?:is|was|are|were|sounds?|looks?|seems?|must be|must have been|would be))"
_OF_OTHERS: Final = _any(
    rf"""
    (?:that|this|it|which|these|those){_IS}\s+(?:the\s+)?(?:{_INTENSE}\s+)*{_JUDGEMENT}\b
    (?:sounds?|look(?:s|ing)?)\s+(?:like\s+(?:you|it)|(?:like\s+)?(?:{_INTENSE}\s+)*{_JUDGEMENT})\b
    (?:I'm|I am|so)\s+(?:{_INTENSE}\s+)*(?:{_FEELING})\s+(?:to {_LEARN}|{_ABOUT}(?:you|your|that))\b
    you(?:'re| are)\s+(?:{_INTENSE}\s+)*(?:most|doing|right|welcome|{_JUDGEMENT})\b
    you(?:'ve)? (?:got (?:this|it)|deserve|rock|must|should be|definitely|inspire)\b
    """
)
_POLITE: Final = _any(
    r"""
    (?:thanks|thank you|thx|cheers|congrats|congratulations|well done|way to go)\b
    (?:good|nice|great) (?:luck|for you|job|call|point|idea|one|work|to (?:see|hear|know|meet)|to)\b
    (?:no (?:problem|worries)|take care|talk to you|see you|bye|good ?bye|catch you|later)\b
    good (?:morning|night|evening|day|afternoon)\b
    keep (?:it |up|going|me|at)|(?:have (?:a|fun)|enjoy)\b
    can't wait to (?:hear|see (?:it|you|what|your|how|the))\b
    I (?:can't imagine|cannot imagine|can imagine|bet|see|get it|appreciate (?:it|that|you|your))\b
    I (?:totally |completely |really )?(?:agree|understand|hear you)\b
    (?:same here|me too|of course|for sure|let'?s? me know)\b
    what an?\b|how\s+\w+[!.]
    (?:I )?(?:hope (?:you|your|it|that|all)|wish(?:ing)? you)\b
    (?:I )?love (?:it|that|this|your|the (?:pic|photo|picture))\b
    """
)
_REACTION: Final = _pattern(rf"^\W*(?:\w+,?[\s!.]+){{0,3}}(?:{_OF_OTHERS}|{_POLITE})")
_FILLER: Final = _pattern(
    r"\b(?:haha\w*|thank you|so much|a lot|of course|by the way|you know|I mean|I guess|I think|"
    + _words(
        """
        hi hey hello hiya yo wow yeah yep yup yes no nope ok okay sure right well oh ah aww? lol omg
        thanks thx please sorry cool great nice awesome amazing good fine absolutely exactly
        definitely totally indeed true agreed btw anyway gosh really very so too just
        """
    )
    + r")\b"
)
_CJK_POLITE: Final = re.compile(
    r"^\W*(?:你好|您好|谢谢|好的|嗯+|哈+|对|是的|再见|早上好|晚安|こんにちは|ありがとう(?:ございます)?|はい|いいえ"
    r"|そうですね?|おはよう(?:ございます)?|안녕하세요|감사합니다|네)\W*$"
)
_IMAGE: Final = re.compile(r"^\[image: [^\]]*\]$")


def is_asking(sentence: str) -> bool:
    """Return whether a sentence has a question's form; a request to remember is no question."""
    tail = sentence[-_JUDGED:]
    is_formed = _QUESTION.search(tail) or _INTERROGATIVE.match(tail)
    return is_formed is not None and _ASKED_TO_REMEMBER.search(tail) is None


def is_question(sentence: str) -> bool:
    """Return whether a sentence asks, and tells nothing."""
    return is_asking(sentence) and not tells_by_asking(sentence)


def tells_by_asking(sentence: str) -> bool:
    """Return whether a question tells something: "Did I tell you that I got the job?"."""
    return _TELLING.search(sentence[:_JUDGED]) is not None


def is_order(sentence: str) -> bool:
    """Return whether a sentence orders something for now: "Explain why …"."""
    return _ORDER.match(sentence[:_JUDGED]) is not None


def is_small_talk(sentence: str) -> bool:
    """Return whether a sentence greets, thanks, reacts, asks, or orders something for now."""
    if is_request_to_remember(sentence):
        return False
    head = sentence[:_JUDGED]
    patterns = (_IMAGE, _CJK_POLITE, _REACTION)
    is_reaction = any(pattern.match(head) for pattern in patterns)
    return is_reaction or is_question(sentence) or is_order(sentence)


def is_supposed(sentence: str) -> bool:
    """Return whether a sentence supposes, wishes or plans: what it says need not be so."""
    return _SUPPOSED.search(sentence[:_JUDGED]) is not None


def is_denied(sentence: str) -> bool:
    """Return whether a sentence denies something."""
    return _DENIED.search(sentence[:_JUDGED]) is not None


def is_request_to_forget(text: str) -> bool:
    """Return whether a text asks that something be forgotten, or says that somebody asked so."""
    return _FORGET.match(text[:_JUDGED]) is not None


def is_request_to_remember(text: str) -> bool:
    """Return whether a text asks that something be remembered, or forgotten."""
    head = text[:_JUDGED]
    return _KEPT_ORDER.match(head) is not None or _ASKED_TO_REMEMBER.search(head) is not None


def without_request(sentence: str) -> str:
    """Return a sentence without "Remember that" in front, as it is if nothing else is in it."""
    match = _LABEL.match(sentence)
    return sentence if match is None else sentence[match.end() :].strip() or sentence


def without_fillers(sentence: str) -> str:
    """Return a sentence without the words that stand in any."""
    return _FILLER.sub(" ", sentence)
