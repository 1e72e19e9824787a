"""Reactions: comments on what was just said, done or answered, with no meaning beyond that.

A clause with a name, an amount, a day or a reason is not one, whatever it looks like.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.text.phrases import (
    HAVE_A,
    NO_KIND,
    POINTING,
    TAKE_CARE,
    any_of,
    pattern,
    words_of,
)
from agent_memory.text.small_talk import words_said

_INTENSE: Final = (
    "(?:"
    + words_of("so really very pretty such a an too just truly absolutely quite all totally super")
    + r"\s+)*"
)
_JUDGEMENT: Final = words_of(
    """
    good great nice cool awesome amazing wonderful fantastic incredible lovely beautiful sweet
    interesting funny true right fine ok okay sad tough hard rough terrible awful crazy wild fun
    inspiring exciting perfect impressive gorgeous stunning adorable cute delicious brilliant
    excellent fascinating best worst it correct helpful relatable neat special important yummy
    understandable news idea point hilarious
    """
)
_FEELING: Final = words_of("glad happy sorry proud excited thrilled")
_IS: Final = r"(?:'?s|\s(?:is|was|are|were|sounds?|looks?|seems?|must be|must have been|would be))"
_SOUNDS: Final = rf"(?:sounds?|look(?:s|ing)?)\s+(?:like\s+)?{_INTENSE}"
_OPINION: Final = pattern(
    any_of(
        rf"""
        (?P<thing>(?:that|this|it|which|these|those){_IS})\s+(?:the\s+)?{_INTENSE}{_JUDGEMENT}\b
        you(?:'re| are)\s+{_INTENSE}(?:most|doing|right|welcome|{_JUDGEMENT})\b
        you(?:'ve)? (?:got (?:this|it)|deserve|rock|definitely|inspire)\b
        you (?:must|should) be\b(?! (?:on|at|in|over|under|able|logged|signed)\b)
        (?:good|nice|great) (?:job|call|point|idea|one|work)\b(?!-)
        can't wait to (?:hear|see (?:it|you|what|your|how|the))\b
        I (?:can't imagine|cannot imagine|can imagine|bet(?! on\b))\b
        I appreciate (?:it|that|you|your)\b
        what an?\b
        {_SOUNDS}it\b
        """
    )
)
"""An opinion on what was said; with more words behind it, it states something."""
_ADDRESSED: Final = frozenset("you your youre it this".split())
_LITTLE_SAID: Final = frozenset(
    """
    a an the to of for in on at so and or but me us them him her one way thing things start end
    hear see know believe say read think look be is was photo picture pic shot view lol though tho
    answer explanation question idea so far ever yet time good
    """.split()
)
_TELLING_WORDS: Final = 2
"""This many words after an opinion say what it is about: "It is best to deploy from main"."""
_DID: Final = words_of("did done read saw seen tried know knew have had heard watched asked")
_REPLY: Final = any_of(
    rf"""
    (?:I|we) (?:do|did|am|are|was|were|will|would|can|could|should|have|had)(?:n't| not)?
    (?:I|we) (?:won't|can't|cannot)|(?:I'm|we're) not|do|don't
    (?:I(?:'ve| have)? )?already {_DID}(?: (?:it|that|this|them|one|so))?
    (?:I(?:'ve| have)? )?(?:seen|tried|done|did) (?:it|that|this)(?: already)?
    (?:I'm|I am|we're) (?:so |really |just )?(?:starving|hungry|bored)(?: (?:right )?now| rn)?
    """
)
"""A reply that says nothing without what it answers, and a mood of the moment."""
_REACTION: Final = pattern(
    any_of(
        rf"""
        {_SOUNDS}(?:you|{_JUDGEMENT})\b
        (?:I'm|I am|so)\s+{_INTENSE}{_FEELING}\s+to (?:hear|know|see)\b
        (?:I'm|I am|so)\s+{_INTENSE}{_FEELING}\s+(?:that |for |of |about )*(?:you|your|that)\b
        (?:thanks(?! to (?!you\b))|thank you|thx|cheers)\b
        (?:congrats|congratulations|well done|way to go)\b
        (?:good|nice|great) (?:luck|for you|to)\b
        (?:{TAKE_CARE}|talk to you|see you|bye|good ?bye|catch you)\b
        good (?:morning|night|evening|day|afternoon)\b(?! \w+ (?:is|are|was|were|has)\b)
        keep (?:it |up|going|me|at)|{HAVE_A}\b|enjoy (?:your|the|it)\b
        I (?:\w+ly )?(?:agree|understand|hear you)(?: (?:with )?(?:you|that|this))?\W*$
        how\s+\w+\W*$
        {_REPLY}\W*$
        (?:I )?(?:hope (?:you|your|all|(?:it|that)(?:'s| helps| works| goes)|(?:it|that)\W*$))
        (?:I )?wish(?:ing)? you\b
        (?:I )?love (?:(?:it|that|this)\W*$|your\b|the (?:pic|photo|picture)\b)
        """
    )
)
_TOLD: Final = pattern(r"\b(?:I|I'm|I've|my|we|our)\b|\d")
"""A mere reaction has none of these words. "What a day I had" states something."""
_RESULT: Final = words_of(
    """
    output result answer response reply code test tests link script page table text function
    command example summary translation formatting one
    """
)
_BETWEEN: Final = words_of(
    """
    just still is was are were look looks seem seems too very now so all also again not isn't
    wasn't doesn't does didn't don't do did won't can't say says what give gives me
    """
)
_WHERE: Final = words_of("on in at with by under after before every each")
"""What follows "runs" if it states a property: "The script runs every night"."""
_VERDICT: Final = any_of(
    rf"""
    works?|worked|working|runs?(?! {_WHERE}\b(?! my\b))|compiles?|helps?|helped|fail(?:s|ed|ing)?
    crash(?:es|ed)?|broke|hangs?|wrong|broken|empty|incorrect|correct|right|good|fine|perfect|bad
    off|missing|long|short|slow|better|worse|the same|I meant|I asked for|I wanted|I want
    (?:an )?errors?|file not found|(?:fix|solv)(?:es|ed) (?:it|that|this)|did (?:it|the trick)
    """
)
_TO_ASSISTANT: Final = any_of(
    rf"""
    (?:did|do|have|are|were|was|would|wo)n't(?! (?:need|have to)\b)
    can't be|\w+ed(?<!eed)|were|did|do
    are(?! (?:not )?(?:allowed|supposed|required|called|named)\b)
    have(?! to\b)|just \w+ed|still|again|also|forgot|broke|made|gave|keep \w+ing|said|lost
    (?:just )?misunderstood|wrong|(?:need to|have to|must|should) \w+ {POINTING}\W*$
    """
)
_ANSWERED: Final = rf"(?:it|this|that|(?:the|your|my) (?:\w+ )?{_RESULT})"
_SAID: Final = "(?:meant(?: for| about)?|said|(?:asked|asking|talking) (?:for|about))"
"""A request to an assistant; "I asked my boss" and "I was talking to Ann" state something."""
_OWN: Final = r"(?:that )?(?:my|our) (?:\S+ ){1,3}(?:is|are) "
"""A statement about something of one's own: "I meant my email is …"."""
_NO_DAY: Final = r"(?!.*\d(?:st|nd|rd|th|[ap]m|[.:/-]\d))"
"""No day or time after it."""
_FAULT: Final = words_of("error errors exception exceptions warning warnings traceback failure")
_SEE: Final = "(?:still |just )?(?:get|got|getting|see|seeing)(?! rid)"
_HELP: Final = "(?:help|options|examples|details)"
_NO_MORE: Final = (
    rf"(?:\W++(?:(?:this|that|the|your|my) \w++|{NO_KIND}|{_RESULT}|{_FAULT}|again|now|too|still"
    r"|either|any|more|anymore|all|yet|far|well|machine|expected|before|last|time|first|second"
    r"|enough|much|bit|little|without|happens|happened|works|worked|changed|problem|issue|thing"
    r"|file|line|step|way|place|order|console|terminal|logs?|something|everything|anything|side"
    r"|when I (?:run|try|do|open)|\d{1,3})\b)*+\W*$"
)
"""Nothing after it but what was just done or answered."""
_DETAIL: Final = pattern(
    r"(?<=\w )(?-i:[A-Z])\w+(?= \w)|\bour\b"
    r"|\b(?:to|by|for|from|with|of|at|in|on|than|and|are|is|was|'re|called|named|call)"
    r" (?-i:[A-Z])\w"
    r"|\b(?:because|until|unless|only|without (?!errors?|warnings?|problems?|issues?)"
    r"|(?:if|when|while) (?!I\b|you\b|it\b))\b"
    r"|\b\d{3}|[$\u20ac\u00a3]\d|\d(?:st|nd|rd|th|[ap]m|[.:/-]\d)"
)
"""A name, a reason, a condition, an amount or a day; a verdict about an answer has none."""
_OF_THE_EXCHANGE: Final = pattern(
    any_of(
        rf"""
        {_ANSWERED}(?:'s)?(?: {_BETWEEN})* {_VERDICT}\b{_NO_MORE}
        (?:still )?(?:does|did|is|was)n'?t (?:work|help|run|compile)(?:ing)?\b{_NO_MORE}
        (?:fixed|solved|figured|sorted) (?:it|that|this)\b(?: (?:out|thx|thanks|ty))*{_NO_MORE}
        (?:still |the )*(?:same|broken|wrong|failing|nothing|no change)\b{_NO_MORE}
        I(?:'m| am)? {_SEE}(?: \w+){{0,4}} {_FAULT}\b{_NO_MORE}
        I(?:'m| am| was)? ?(?:just )?{_SAID} (?!{_OWN}){NO_KIND}\b{_NO_DAY}
        I(?: need| want|(?:'d| would) (?:need|want|like))(?: your| some| more)? {_HELP}\b{_NO_MORE}
        here(?:'s| is| are) (?:the|it|that|what|an?|some|this)(?: \w+){{0,3}}\W*$
        you(?:'re|'ve|'d)? {_TO_ASSISTANT}\b
        not (?:that|this|the|what|it|quite|exactly)\b
        not (?:really )?an? (?:(?:very )?(?:{_JUDGEMENT}|bad)\b|[\w-]+\W*$)
        not really (?:that|this|the|what|it)\b
        let's (?:start|try|continue|go|move|do|see|talk|get|look|stop|begin|leave|wait|say)\b
        """
    )
)
"""A remark about what was just done or answered, which is of no lasting use."""


def is_reaction(clause: str) -> bool:
    """Return whether a clause reacts to what was just said, or is about what was just answered."""
    if _OF_THE_EXCHANGE.match(clause):
        return clause.isupper() or _DETAIL.search(clause) is None
    if opinion := _OPINION.match(clause):
        return not _tells_more(clause, opinion)
    reaction = _REACTION.match(clause)
    return reaction is not None and _TOLD.search(clause, reaction.end()) is None


def _tells_more(clause: str, opinion: re.Match[str]) -> bool:
    """Return whether a clause tells something behind an opinion: "It's fine to call Ben"."""
    if _TOLD.search(clause, opinion.end()) or _DETAIL.search(clause, opinion.start() + 1):
        return True
    words = [word.form for word in words_said(clause[opinion.end() :])]
    if opinion["thing"] is None or not _ADDRESSED.isdisjoint(words):
        return False
    return sum(word not in _LITTLE_SAID for word in words) >= _TELLING_WORDS
