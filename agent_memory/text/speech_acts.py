"""What a sentence does: ask, order, greet, react, suppose, deny, ask to remember.

Both parts that decide which sentences are worth keeping, capture and fact extraction, rely on this.
Pure. Only the first 1,000 characters of a sentence are looked at; nothing longer is a sentence.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from agent_memory.text.asides import asides_of_order, asides_of_question
from agent_memory.text.languages import FUNCTION_WORDS
from agent_memory.text.phrases import (
    HAVE_A,
    NO_KIND,
    POINTING,
    TAKE_CARE,
    any_of,
    pattern,
    words_of,
)
from agent_memory.text.quotations import has_quotation
from agent_memory.text.reactions import is_reaction
from agent_memory.text.requests import tells_by_requesting
from agent_memory.text.small_talk import is_made_of_small_talk, opening_end, words_said

_JUDGED: Final = 1_000
"""Characters of a sentence that are used to judge it."""


_OPENER: Final = (
    r"^\W*(?:"
    + words_of("so and but oh hey wow well now please then ok okay also hi")
    + r"[\s,!.]+)*"
)
_MEASURE: Final = "(?:what (?:time|day|date|year|kind|sort|type|colou?r|size)|(?:which|how) \\w+)"
_TIPS: Final = "(?:ideas?|tips|suggestions?|advice|thoughts|recommendations)"
_ASKING: Final = any_of(
    rf"""
    (?:do|did|are|were|have|can|could|would|will) you\b
    (?:is|are|was|does|did|can|should|shall|has|have) (?:it|this|that|there|we|I|they|he|she)\b
    do (?:there|we|I|they)\b
    (?:what|how|why|where|who|which)(?:'?s|\s(?:is|are|was|do|did|does|about|have|would|can))\b
    {_MEASURE} (?:is|are|do|does|did|can|should|will) (?:it|this|there|we|I|you|they|he|she)\b
    any {_TIPS}(?:\W*$| (?:for|on|about)\b(?!.*\b(?:goes|go|is|are|should|must|will)\b))
    """
)
_INTERROGATIVE: Final = pattern(
    r"^\W*(?:why|what|how|who|which|where|when|do|does|did|is|are|was|were|can|could|should|would"
    r"|have|has|shall|may)\b[^.?]*[?\uff1f]"
)
_QUESTION: Final = pattern(
    r"[?\uff1f][\s\"\x27\u201d)\]*_]*$"
    r"|[\u5417\u5462\u5427\u304b][\u3002\s]*$"  # question particles of Chinese and Japanese
    rf"|{_OPENER}{_ASKING}"
)
# A question that still states something.
_TELLING: Final = pattern(
    rf"(?:{_OPENER}|[,;:]\s+(?:and |but |so )?)(?:did I (?:tell|mention)|have I told"
    r"|(?:do you )?(?:still )?remember (?:when|that) (?:I|we)"
    r"|(?:do |did |as )?you know (?:that )?I"
    r"|(?:can|could|would) you believe (?:that )?(?:I|we|my|our|(?-i:[A-Z])\w+)"
    r"|(?:have|did) you heard? (?:that )?(?:I|we|that (?:my|our)))\b"
)
_ORDERS: Final = words_of(
    """
    write rewrite make give show tell explain summarise summarize translate generate create list
    find help fix add run rerun check look describe compare convert draft suggest recommend
    send calculate implement debug refactor continue open read delete remove rename change update
    sort format print repeat edit correct improve shorten expand review test try put move undo
    finish start build install commit push deploy merge let's gimme
    """
)
_ORDER: Final = pattern(
    r"^\W*(?:(?:can|could|would|will) you\s+|I(?:'d| would)? (?:want|like|need) you to\s+"
    r"|please\s+|kindly\s+|just\s+|now\s+|also\s+)*"
    rf"(?:(?P<verb>{_ORDERS})"
    r"|(?:suppose|pretend) (?:that )?(?:I(?! should)|im|you|we|my|our)"
    r"|imagine (?:that )?(?:you|if|(?:(?:I|we)\b|(?:my|our) \w+ (?:is|are)\b)(?!.*!))"
    rf"|let me know|keep (?:me|it|up|going)|{TAKE_CARE}|{HAVE_A}|go on|stay \w+$"
    rf"|(?:use|do|keep|take) (?:{POINTING}|the (?:first|second|third|last|other|same)|option))\b"
)
# "Make that a budget of 900" corrects what was said before.
_MAKE_THAT: Final = pattern(
    r"^\W*make (?!.*\b(?:list|table|summary|essay|poem|story|text|outline|grid|array|words?|lines?"
    r"|sentences?|paragraphs?|columns?|rows?|items?|bullets?|points?|characters?|pages?)\b)"
    r"(?:(?:that|it) (?:an?|the|my|our) (?:[\w-]+ ){1,3}of|that) (?:[$\u20ac\u00a3] ?)?"
    r"(?:\d|(?:on |at |by )?(?:noon|midnight|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b)"
)
_SEASON: Final = words_of(
    "week month year weekend night morning afternoon evening spring summer autumn winter"
)
_MONTH: Final = words_of(
    "january february march april may june july august september october november december"
)
_TIME: Final = any_of(
    rf"""
    tomorrow|tonight|(?:next|this) {_SEASON}|at (?:\d{{1,2}}(?!\d)|noon|midnight)|in {_MONTH}
    (?:on|by|next|this) (?:mon|tues|wednes|thurs|fri|satur|sun)days?
    """
)
_UNITS: Final = words_of(
    "g kg mg ml dl cl oz lbs? tsp tbsp cups? (?:tea|table)spoons? seconds? minutes? hours? days?"
    " weeks? months? years? km"
)
# "Add 200 g of flour", "Send the rent by Friday", "Repeat it in 3 months": a step, and plans.
_LATER: Final = pattern(
    r"^\W*(?:add|send|continue|run|repeat|put|move|finish|start|submit)\b"
    rf"(?!.*\b(?:me|here|this|that|about)\b).*?\b(?:{_TIME}"
    rf"|(?:on|by|until|till|before|from|after) (?:the \d{{1,2}}(?:st|nd|rd|th)|{_MONTH}|noon"
    r"|midnight|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)"
    rf"|\d+(?:[.,]\d+)? ?(?:{_UNITS}|\u00b0 ?[CF])|(?:at|by|until) \d{{1,2}} ?[ap]m)\b"
)
_NOT_CHOSEN: Final = (
    rf"(?!{NO_KIND}\b|{POINTING}\b|option|plan\b|(?:first|second|third|last|other|same)\b"
    r"|(?:something|anything|yours?|mine|both|either|all|what\w*)\b)"
)
"""What was just proposed, or anything: "Let's use the second approach" decides nothing lasting."""
# "Let's go with Postgres", "Let's meet at noon tomorrow": a decision, and a plan.
_AGREED: Final = pattern(
    r"^\W*let'?s\s+(?:(?:use|take|choose|pick|adopt|stick with|switch to|move to|go with|go for)"
    r"\s+(?-i:[A-Z])\w"
    r"|(?:use|adopt|stick with|switch to|go with)\s+"
    rf"(?:the (?=(?:[\w-]+ ){{1,3}}(?:for|as|in|on)\b))?{_NOT_CHOSEN}\w"
    rf"|(?!talk|speak|see|look|try)\w+ (?:{POINTING}|the \w+) (?:on|in|at|with|to|for)"
    r" (?-i:[A-Z])\w"
    rf"|(?:keep|name|call|store|ship|release|drop|avoid|adopt|agree|postpone)\s+"
    rf"(?!going|option|(?:it|this|that)\W*$|(?:the )?(?:first|second|third|last|other|same)\b)\w"
    rf"|not (?:use|store|ship|add|allow|support|invite|buy|eat)\s+(?!{POINTING}\b)\w"
    r"|say (?:the|my|our) (?:[\w-]+ ){1,3}(?:is|are)\b"
    rf"|(?!(?:talk|speak|chat|see|try|continue|stop|wait)\b"
    rf"|(?:start|do)\s+(?:{POINTING}|over|with|now|{_TIME})\b)[^.!?]*\b{_TIME}\b)"
)
# "Call me Sam", "answer in German": how somebody wants to be addressed.
_MANNER: Final = (
    r"(?:call me (?!back|later|again|when|if|at|on|tomorrow|tonight|now|stupid)\w|address me\b"
    r"|(?:speak|talk)(?: to me)?(?: in)? (?-i:[A-Z])\w|speak (?-i:[A-Z])\w"
    r"|(?:answer|respond|reply)(?: to me)? (?:in|with|without) \w"
    rf"|(?:use|avoid|stop using) (?!{NO_KIND}\b)\w"
    r"|keep (?:your )?(?:answers?|replies|responses|explanations|messages) \w"
    r"|be (?:very |more )?(?:brief|concise|short|terse|formal|informal|polite|direct|blunt)\b)"
    r"(?!.*\b(?:it|this|that|these|those|here)\b)"
)
# "Try to keep answers short" is a lasting wish, "Try to fix it" an order.
_TRYING: Final = pattern(rf"^\W*(?:please\s+)?try\s+(?:not\s+)?to\s+{_MANNER}")
_WANTED: Final = pattern(
    rf"^\W*I(?:'d| would)? (?:want|like|need) you to\b(?! {_MANNER})"
    r"(?! (?:know|remember) (?!(?:this|that|it|these|everything)(?:\W*$| for\b)|what\b|how\b)\w)"
)
# A lasting rule is about a kind: "every", "never", "instead of", "prices in francs".
_STANDING: Final = pattern(
    r"\b(?:always|never|every|each|any|anything|whenever|all(?! (?:of|the|this|that|these|those)\b)"
    r"|instead of|rather than|from now on|going forward|in future|in the future|by default"
    r"|everywhere|unless|only (?:when|if|on|in|after|before)|daily|weekly|monthly"
    r"|(?:make|be) sure|(?:before|after) (?:\w+ing|you|a|an))\b"
)
_INSTRUCTION: Final = pattern(
    r"^\W*(?:please\s+|kindly\s+|try\s+(?:not\s+)?to\s+)*(?:always|never|from now on"
    r"|going forward|(?:don't|do not)(?! (?:(?:drink|eat|smoke|drive)\b|do \w+days?\b"
    r"|(?:work|go) (?:at|to|for)\b).*\bany ?more\b)"
    rf"|use|prefer|avoid|make sure|ensure|be sure|stop \w+ing|keep|treat|(?!let's){_ORDERS})\b"
)
_OF_A_KIND: Final = pattern(
    rf"(?:\s+(?!{NO_KIND}\b)(?:[\w-]+\s+){{0,3}}?[\w-]*[^\Ws]s"
    r"\s+(?:in|with|to|at|by|on|as|from|without|under|via|using)\b"
    rf"|(?<!continue)(?<!help)(?<!start)\s+(?:with|via|using|from|on)\s+(?!{NO_KIND}\b)\w"
    r"|(?<!me)\s+[^,;:]{1,60}? (?:when|if) (?:an?|the|we|there)\b"
    rf"|(?:,?\s+(?!{NO_KIND}\b)[\w-]+){{0,3}}?\s+(?:often|regularly|frequently)\W*$"
    rf")(?!.*\b{POINTING}\b)"
)
"""What follows a verb that is about a kind: "invoices to …", "with Bazel", "if a …", "often"."""
# A verb used as a label is not an order: "Update: I moved to Lisbon", "Test coverage is 84 %".
_HEADING: Final = words_of(
    "write show list help fix run check draft open read change update edit review test move finish"
    " start build install commit deploy merge format sort print add remove delete improve create"
    " refactor debug push send calculate"
)
_LABEL_OF: Final = words_of(
    "show list help fix run check draft open change update edit review test move finish start build"
    " install commit deploy merge format sort print push create improve make"
)
"""Also nouns: "Test results: negative" has a label, "Translate to French: cat" is an order."""
_HAS_VERB: Final = words_of(
    "is are was were has had will must can cannot can't may should do does doesn't don't didn't did"
    " isn't aren't wasn't weren't due"
)
"""What follows a noun: "Test is", "Build server has"."""
_TELLS_OF_THINGS: Final = words_of(
    "goes go takes took lives comes came gets starts started ends ended costs expires closes opens"
    " returns return follows lag lags landed went"
)
"""What follows two nouns in a statement: "Debug logs go to …"; "Fix returns" is an order."""
_THIRD_PERSON: Final = words_of(
    """
    goes takes needs comes gets happens requires depends includes contains belongs exists becomes
    remains stays lasts wants means lives keeps runs fails passes succeeds begins waits expects
    allows uses lags hangs expires finishes produces creates generates removes deletes sends writes
    installs publishes uploads downloads follows makes gives shows
    went got took came broke became ran began made had kept fell cost
    """
)
"""Verbs that are hardly ever nouns in the plural: "Build takes", but "Build images"."""
_STATES: Final = pattern(
    rf"{_LABEL_OF}\s+(?:{_THIRD_PERSON}|costs (?:about )?[$\u20ac\u00a3\d]"
    r"|[a-z]+[^\Ws]s (?:no |its |(?:usually|always|never|normally|typically|currently|only|still)"
    r" (?=\w))|(?!based|related|needed)[a-z]+ed (?:because|since|due|on|at|by|with|after|before"
    r"|through|to|from|in|yesterday|last|today|the|an?|our|all)\b)"
)
"""What makes a statement of a noun that is also a verb: a finite verb in the third person. "Build
users a page" is an order, "Test based on the spec" too."""
_NO_NOUN: Final = words_of(
    """
    what why who whom whose which where when how if whether that because while until and or but sure
    out everything all each every any people someone anyone not there he she it we they I you
    """
)
_OF_A_NAME: Final = rf"\s+(?!(?:{NO_KIND}|{_NO_NOUN})\b)[^\s,:;.!?]+(?:[.:]\w+)*"
_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?"
_TEXT: Final = words_of(
    "code text spelling grammar sentence sentences email paragraph essay error bug typo"
)
"""The object of a verb in an order: "Check spelling: …"."""
_IN_NAME: Final = pattern(
    rf"(?:-\w|\s*=|\s+of\b|(?<=update)\s+on\b(?!\s+\w+days\b)|(?<=fix)\s+for\b|\s+{_HAS_VERB}\b"
    rf"|(?:{_OF_A_NAME}|(?<=check)\s+in|(?<=move)\s+to(?=\s+(?-i:[A-Z]))"
    rf"|\s+to(?:\s+the)?(?=\s+[\w./-]+\s+(?:{_HAS_VERB}|{_TELLS_OF_THINGS}|{_THIRD_PERSON})\b))"
    rf"(?:\s+(?:of|for|on|in|at|to)(?:\s+the)?)?(?:{_OF_A_NAME}){{0,3}}?"
    rf"\s+(?:{_HAS_VERB}|{_TELLS_OF_THINGS}|{_THIRD_PERSON})\b"
    rf"|(?<=open)\s+(?:until|till|daily|from|between|(?:on\s+)?(?:weekdays|weekends|{_DAY})\b"
    r"|\d{1,2}(?:[:.]\d\d)?\s*(?:(?:[ap]m|h|uhr|to|till|until)\b|[-\u2013])))"
)
_IS_HEADING: Final = pattern(
    rf"(?:{_HEADING}(?:\([^()]{{0,40}}\))?!?:\s"
    rf"|{_LABEL_OF}(?:\s+(?!(?:{NO_KIND}|{_NO_NOUN}|{_TEXT})\b)[^\s,:;.!?]+){{1,3}}:\s+\S)"
)
# "- [ ] Send the invoice" is from somebody's list.
_TICK_BOX: Final = re.compile(r"^\W{0,3}\[[ xX]?\]\s+\S")
_WHERE_KEPT: Final = (
    r"(?:to|in|into|on) (?:(?:my|your|our|the) (?:\w+ )?)?"
    r"(?:profile|notes|memory|records|preferences|diary)"
)
_IS: Final = words_of(
    "is are was were has have had will can likes loves hates lives works needs wants prefers"
)
_CLAUSE: Final = any_of(
    rf"""
    (?:I|we|he|she)\b|(?:my|our|the) (?:\S+ ){{1,4}}{_IS}\b|(?-i:[A-Z])\S*(?: \w+)? {_IS}\b
    """
)
"""The beginning of a clause: in "add that function" there is none."""
_SAVING: Final = (
    r"(?:add|save|store|record|log|put|write down|note down)"
    rf"(?:(?: {_WHERE_KEPT})(?: that\b|:)|(?: down)? that(?= {_CLAUSE}))"
)
"""Asks to remember what follows: "Add to my profile that I'm tall"."""
_REMINDING: Final = (
    r"(?:remind (?:me|us)|mind (?:noting|remembering)) that(?= (?:(?:I|we|he|she|they|there)'\w+ \w"
    r"|(?:I|we|he|she|they|there|my|our|his|her|their|the|(?-i:[A-Z])\w+) \w+ \w))"
)
"""But "remind me that one" and "remind me what …" ask."""
_KEPT_ORDER: Final = pattern(
    r"^\W*(?:please\s+)?(?:(?:remember|don't forget|do not forget|note|keep in mind"
    r"|forget(?! (?:it|that|about (?:it|that))\W*$))\b"
    rf"|(?:(?:also|and|so|ok|okay|please)[\s,]+)*{_SAVING})"
)
_ASKED_TO_REMEMBER: Final = pattern(
    r"\b(?:can|could|will|would) you (?:please |also )?(?:(?:remember|note|keep in mind)"
    r"\s+(?:that(?= \w)(?! (?:down|one|thing|for (?:me|us|later|now|next time))\b)|to|this:)"
    rf"|{_SAVING}|{_REMINDING})"
)
_ASKED_FOR: Final = pattern(rf"{_OPENER}(?:can|could|will|would) you\b")
_ASKED_MANNER: Final = pattern(
    rf"{_OPENER}(?:can|could|will|would) you (?:please |also )*{_MANNER}"
)
_FORGET: Final = pattern(
    r"^\W*(?:[\w-]{1,40}:\s+)?(?:(?:please|can you|could you|ok|actually)[\s,]+)*"
    r"(?:forget|(?:delete|erase|remove)(?![^.!?]*\b(?:before|after) \w+ing\b)"
    r"|stop remembering)\b(?!\W+(?:to\b|about it|it\b))"
    r"|^\W*+\w\S*+(?: \S++)? (?:asks?|asked|wants?|wanted|requests?|requested)"
    r" (?:\w+ )?(?:to|that)\b"
    r".{0,60}\b(?:forget|forgotten|delete|deleted|erase|erased|remove|removed)\b"
)
# It may tell of somebody: "Olvida que soy su hijo" is "he forgets it" too. What a comma or a colon
# parts from the order is new: "Vergiss, dass ich Bonn gesagt habe, ich wohne in Köln."
_FORGET_ABROAD: Final = pattern(
    r"^\W*(?:(?P<please>bitte|por favor|s'il (?:te|vous) pla[i\u00ee]t)[\s,]+)?(?:"
    r"(?:vergiss|vergessen sie)(?:,? bitte)?,? dass\b"
    r"|oubliez? (?:que\b|qu')"
    r"|(?(please)olvid[ae]|olvida(?= que (?:(?:yo|no|me) )?(?:soy|estoy|(?-i:[a-z\u00ed]+o))\b))"
    r" que\b(?!.*\b(?:cada|cuando|siempre)\b)"
    r"|\u8bf7\u4f60?\u5fd8[\u4e86\u8bb0\u6389](?=\u6211)|\u5fd8\u6389(?=\u6211)"
    r"|\u5fd8[\u4e86\u8bb0]\u6211(?=[\u4f1a\u4f4f\u559c]))(?!.*[,:;\uff0c\uff1a\uff1b])"
)
_SAID_BY: Final = re.compile(r"^\W*[\w-]{1,40}:\s+")
LEAD: Final = (
    r"^\W*(?:(?:also|and|so|ok|please|by the way|one more thing"
    r"|(?:can|could|will|would) you)[\s,:]+)*"
)
"""What may come before an order: "Also, please …"."""
_LABEL: Final = pattern(
    rf"{LEAD}(?:(?:remember|don't forget|do not forget|keep in mind|note)"
    rf"(?:\s+that\b|\s+this:|:|(?=\s+(?:I|we)\b))|{_SAVING}"
    rf"|(?:(?<=you )|(?<=you please )){_REMINDING})\s*"
)
_SUPPOSED: Final = pattern(
    r"\b(?:if|unless|would|could|might|(?-i:may)(?! \d)|maybe|perhaps|suppose|imagine|wish|hopes?"
    r"|hypothetically|want(?:s|ed)?|plan|used to)\b"
)
# "Status: angenommen, ich bin dabei" and "nehmen wir Postgres" suppose nothing.
_HYPOTHESIS: Final = pattern(
    r"^(?!.*;)\W*(?:angenommen, (?:ich|wir)\b"
    r"|(?:[^\W\d_]{1,30}:\s+)?(?:for (?:the sake of argument|argument's sake),"
    r"|angenommen,? dass (?:ich|wir|meine?|unsere?)\b"
    r"|nehmen wir (?:(?:ein)?mal )?an,|(?:supongamos|sup[o\u00f3]n|imaginemos) que\b"
    r"|(?:supposons|imaginons) (?:que\b|qu')|\u5047\u8bbe(?=\u6211)))"
)
# In a name, as in "No Doubt", it denies nothing.
_DENIED: Final = pattern(
    r"\b(?:(?-i:no)|not|never|nobody|none|neither|nor|hardly|no longer|\w+n't)\b"
)

_CLAUSE_END: Final = re.compile(
    r"[,;:!?()\u2026\u2013\u2014\u3001\u3002\uff0c\uff01\uff1a]+|\.(?=\s|$)|\s-+\s"
)
_NEXT_WORD: Final = re.compile(r"\s+([^\W\d_]+)")
_IMAGE: Final = re.compile(r"^\[image: [^\]]*\]$")


def is_asking(sentence: str) -> bool:
    """Return whether a sentence has the form of a question; a request to remember has not."""
    tail = sentence[-_JUDGED:]
    if _ASKED_TO_REMEMBER.search(tail) or (_ASKED_FOR.match(tail) and is_standing(tail)):
        return False
    if _ASKED_MANNER.match(tail):
        return False
    return _QUESTION.search(tail) is not None or _INTERROGATIVE.match(tail) is not None


def is_question(sentence: str) -> bool:
    """Return whether a sentence only asks, and states nothing."""
    return is_asking(sentence) and not tells_by_asking(sentence)


def tells_by_asking(sentence: str) -> bool:
    """Return whether a question states something: "Did I tell you that I got the job?".

    So does "I'm allergic to nuts, can I eat this?".
    """
    head = sentence[:_JUDGED]
    if _TELLING.search(head) is not None or tells_by_requesting(_without_opening(head)):
        return True
    return any(not (is_asking(aside) or is_small_talk(aside)) for aside in asides_of_question(head))


def is_order(sentence: str) -> bool:
    """Return whether a sentence orders something for now: "Explain why …", "Run the tests again".

    An order for always, for every time, or for everything of a kind is not one.
    """
    head = _without_opening(sentence[:_JUDGED])
    if any(lasts.match(head) for lasts in (_MAKE_THAT, _AGREED, _LATER, _TRYING)):
        return False
    match = _ORDER.match(head) or _WANTED.match(head)
    return match is not None and not (
        is_standing(head)
        or _OF_A_KIND.match(head, match.end()) is not None
        or _names_something(head, match)
    )


def _names_something(text: str, order: re.Match[str]) -> bool:
    """Return whether the verb of what looks like an order names something: "Test coverage is …"."""
    verb = order.groupdict().get("verb")
    if verb is None or verb.lower().startswith("let"):
        return False
    return (
        _IS_HEADING.match(text, order.start("verb")) is not None
        or _IN_NAME.match(text, order.end("verb")) is not None
        or _STATES.match(text, order.start("verb")) is not None
        or _is_foreign(_NEXT_WORD.match(text, order.end("verb")))
    )


def _is_foreign(word: re.Match[str] | None) -> bool:
    """Return whether a word is one of German, French or Spanish alone: "Test ist negativ"."""
    return word is not None and word[1].lower() in _foreign_words()


@cache
def _foreign_words() -> frozenset[str]:
    words = frozenset().union(*(FUNCTION_WORDS[name] for name in ("german", "french", "spanish")))
    return words - FUNCTION_WORDS["english"] - frozenset(("me", "die", "man", "hat"))


def is_instruction(sentence: str) -> bool:
    """Return whether a sentence says how something should be done from now on."""
    head = _without_opening(sentence[:_JUDGED])
    order = _ORDER.match(head)
    if _INSTRUCTION.match(head) is None or (order and _names_something(head, order)):
        return False
    return not is_order(sentence)


def is_standing(sentence: str) -> bool:
    """Return whether a sentence is about what should always hold, or about everything of a kind."""
    return _STANDING.search(sentence[:_JUDGED]) is not None


def is_small_talk(sentence: str) -> bool:
    """Return whether a sentence has nothing worth keeping.

    Each of its clauses greets, thanks, reacts, asks, orders something for now, or is about what was
    just answered. Any other clause is content, whatever stands before it.
    """
    head = sentence[:_JUDGED]
    if is_request_to_remember(sentence) or _TICK_BOX.match(head) or _IS_HEADING.match(head):
        return False
    if _IMAGE.match(head) or _HYPOTHESIS.match(head):
        return True
    if is_question(sentence):
        return True
    if is_order(head):
        return not _tells_by_ordering(head)
    return _is_one_word(head) or all(_is_empty(clause) for clause in _CLAUSE_END.split(head))


def _tells_by_ordering(head: str) -> bool:
    if tells_by_requesting(_without_opening(head)):
        return True
    return any(not _is_empty(aside) for aside in asides_of_order(head))


def is_bare_name(sentence: str) -> bool:
    """Return whether a sentence is a single word that may be a name, and says nothing alone."""
    head = sentence[:_JUDGED]
    return _is_one_word(head) and not is_asking(head) and not _is_empty(head)


def _is_one_word(head: str) -> bool:
    words = words_said(head)
    return len(words) == 1 and words[0].form.isalpha() and head.isascii()


def _is_empty(clause: str) -> bool:
    if is_made_of_small_talk(clause):
        return True
    bare = _without_opening(clause)
    if _AGREED.match(bare):
        return False
    if is_order(bare):
        return True
    return is_reaction(bare)


def _without_opening(text: str) -> str:
    return text[opening_end(text) :].lstrip(" \t\n\"'*_-([")


def is_supposed(sentence: str) -> bool:
    """Return whether a sentence supposes, wishes or plans, so that it need not be true."""
    head = sentence[:_JUDGED]
    return _SUPPOSED.search(head) is not None or _HYPOTHESIS.match(head) is not None


def is_denied(sentence: str) -> bool:
    """Return whether a sentence denies something."""
    return _DENIED.search(sentence[:_JUDGED]) is not None


def is_request_to_forget(text: str) -> bool:
    """Return whether a text asks to forget something, or says that somebody asked for it."""
    head = text[:_JUDGED]
    if has_quotation(text):
        return False
    if _FORGET.match(head) is None:
        return may_tell_of_forgetting(text)
    spoken = _SAID_BY.sub("", head)
    order = _ORDER.match(spoken)
    if order is None or spoken[order.end() :].lstrip()[:1].isupper():  # "Delete Bob is ill"
        return True
    return not _names_something(spoken, order)


def may_tell_of_forgetting(text: str) -> bool:
    """Return whether a text asks to forget something, or tells that somebody does."""
    return _FORGET_ABROAD.match(text[:_JUDGED]) is not None


def is_request_to_remember(text: str) -> bool:
    """Return whether a text asks to remember something, or to forget it."""
    head = text[:_JUDGED]
    return _KEPT_ORDER.match(head) is not None or _ASKED_TO_REMEMBER.search(head) is not None


def without_request(sentence: str) -> str:
    """Return a sentence without a leading "Remember that", unless nothing else is in it."""
    match = _LABEL.match(sentence)
    if match is None:
        return sentence
    rest = sentence[match.end() :].strip()
    return (rest.rstrip("?") if _ASKED_FOR.match(sentence) else rest) or sentence
