"""What a request states by what it asks for.

"Change my address to Oak Street 5" and "Put me down for the vegetarian menu" say what is to hold,
"Suggest a gift for my wife Clara" says who Clara is. "Rename the variable" says nothing.
"""

from __future__ import annotations

from typing import Final

from agent_memory.text.phrases import NO_KIND, POINTING, any_of, pattern, words_of

_WORK: Final = words_of(
    """
    code text files? functions? scripts? pages? tests? essays? e?mails? letters? paragraphs?
    quer(?:y|ies) class(?:es)? methods? variables? prompts? prs? branch(?:es)? repos? resume cv
    documents? docs? sentences? titles? headings? headers? tables? columns? rows? lines? answers?
    images? buttons? colou?rs? bugs? errors? commits? readme
    """
)
"""What is worked on together: what is to be done with it is for now."""
_NAME: Final = r"(?-i:(?!I\b)[A-Z])[\w&.+-]*"
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tomorrow|noon|midnight"
_BEFORE_VALUE: Final = (
    "(?:(?:an?|the|about|room|version|early|late|morning|afternoon|evening|end|week|of|on) ){0,4}"
)
_VALUE: Final = rf"{_BEFORE_VALUE}(?:{_NAME}|[$\u20ac\u00a3]?\d|[^\s@]+@|(?:{_DAY})\b)"
_WHOSE: Final = rf"(?:my|our|{_NAME}'s)"
_WORD: Final = r"[\w\x27-]+"
_ASKED: Final = r"^\W*(?:(?:please|kindly|just|now|also|(?:can|could|will|would) you)\s+)*"
_SET: Final = words_of(
    "change update set switch move rename correct raise lower increase reduce postpone reschedule"
)
_NO_VALUE: Final = rf"(?:{POINTING}|{NO_KIND}|be|use|have|look|make|return|include|reflect|match)"
_LISTS: Final = words_of("list calendar agenda diary schedule contacts budget basket cart")
_OBJECT: Final = rf"(?!{POINTING}\b|(?:\S+ )?{_WORK}\b)"
_SLOT: Final = rf"{_OBJECT}(?:{_WORD} ){{1,4}}?"
_MONEY: Final = r"(?:[$\u20ac\u00a3] ?)?"
_WHOM: Final = rf"(?:me|us|my \w+|{_NAME})"
_AS: Final = "(?:on|is|as|to)"
_ADD: Final = words_of("add put note enter")
_SETTING: Final = pattern(
    _ASKED
    + any_of(
        rf"""
        {_SET} the {_SLOT}to {_VALUE}
        {_SET} {_WHOSE} {_SLOT}to (?:{_VALUE}|(?!{_NO_VALUE}\b){_WORD}(?: {_WORD})?\W*$)
        make (?:that|the|my|our) {_SLOT}{_MONEY}(?:\d+(?!\S*? ?{_WORK}\b)|(?:{_DAY})\b)
        {_ADD} {_OBJECT}(?:{_WORD},? ){{1,8}}?(?:to|on|in|into) (?:{_WHOSE} {_OBJECT}\w)
        {_ADD} {_OBJECT}(?:{_WORD},? ){{1,8}}?(?:to|on|in|into) the (?:\w+ )?{_LISTS}\b
        (?:{_ADD}|save|{_SET}) {_WHOSE} {_OBJECT}(?:{_WORD} ){{0,3}}{_WORD}(?::| {_AS}) {_VALUE}
        (?:put|sign|count|mark) {_WHOM} (?:down|up|in) (?:for|as|on) (?!{POINTING}\b)\w
        """
    )
)
"""It sets a value, adds to what somebody has, or says what somebody takes part in."""
_PERSONAL: Final = pattern(
    r"\b(?:for|with|to|from|and|near|around) (?:my|our) "
    rf"{_OBJECT}(?:(?:\d+|two|three|four|five|six) {_OBJECT}\w"
    rf"|(?:(?-i:[a-z])[\w\x27-]* ){{1,3}}?(?:(?:at|in|near|called|named) )?(?:{_NAME}|\d)"
    rf"|(?:(?-i:[a-z])[\w\x27-]* ){{0,2}}{_WORD},? (?:an? \w|who\b|(?:s?he|they)\b))"
    rf"|\bfor (?:my|our) {_OBJECT}(?:(?-i:[a-z])[\w\x27-]* ){{1,3}}?(?:to|on|with) {_VALUE}"
)
"""For whom or what it is, by name or number: "for my dog Bello", "to my office at Oak Street 5"."""
_KIN: Final = words_of(
    "wife husband partner girlfriend boyfriend son daughter baby mother father mom mum dad sister"
    " brother aunt uncle cousin niece nephew grandmother grandfather"
)
_KIN_NAME: Final = (
    rf"(?:my|our) (?:(?-i:[a-z\d])[\w-]* ){{0,4}}?{_KIN},? (?!(?:{_DAY})\b)(?-i:[A-Z][a-z]+),?"
)
_FOR_KIN: Final = pattern(
    r"^\W*(?:what|which|how many)\b(?: \w+){0,3}? (?:should|can|could|shall) (?:I|we) \w+"
    rf" {_KIN_NAME}(?:\W*$| (?:for|on|at|this|next|when|if|as|who) \w)"
    rf"|^\W*(?:what|which|where|when|how|why)\b(?: \w+){{0,3}}? (?:should|can|could) {_KIN_NAME}"
    r" (?!(?:an?|the|it|this|that|me|us|him|them|my|our|your|his|her|their)\b)(?-i:[a-z])"
)
"""Whom it is for or about: "What should I buy my wife Clara?". In "Can I teach my son French?" what
follows is what is taught; "What" has asked for that before. In "How can my mom Google this?" what
follows is done.
"""
_RECALLING: Final = pattern(
    r"\b(?:did|have|had) (?:I|we)\b|^\W*(?:when|where|who|what) ?(?:'s|is|are|was|were)\b"
)
"""Asks for what is known: "What did I buy for my wife Clara?"."""


def tells_by_requesting(sentence: str) -> bool:
    """Return whether a request or a question states a fact by what it asks for."""
    if _SETTING.match(sentence):
        return True
    is_personal = _PERSONAL.search(sentence) or _FOR_KIN.search(sentence)
    return is_personal is not None and _RECALLING.search(sentence) is None
