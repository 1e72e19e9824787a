"""Short answers, joined to what an assistant asked: "chi." says nothing without its question."""

from __future__ import annotations

from typing import Final

from agent_memory.extraction.rules.corrections import is_of_a_value_alone
from agent_memory.extraction.rules.statements import statement
from agent_memory.text.phrases import POINTING, pattern, words_of
from agent_memory.text.sentences import sentences
from agent_memory.text.small_talk import is_made_of_small_talk, opening_end
from agent_memory.text.speech_acts import is_asking, is_order, is_small_talk

_ANSWER_WORDS: Final = 8
_LONGEST: Final = 300
"""Characters of a question that is kept with its answer."""
_TO_USER: Final = pattern(
    r"\b(?:do|did|are|were|have|had|can|will|would) you\b|\b(?:is|are|was|were|does|do|did|has|have"
    r"|can|will) (?:your|any(?:one|body) in your)\b"
)
_OFFERS: Final = pattern(
    rf"\b{POINTING}\b|\byou (?:mean|(?:want|like|need|prefer) me\b|ready|sure|done|still there"
    r"|(?:like|want|prefer) (?:to (?:see|know|continue|proceed|try|hear|start|add|change)|more"
    r"|some|an? (?:example|summary|list|explanation|demo))"
    r"|(?:have|need) (?:any|more|other|further|another|some)?(?: \w+)? ?(?:questions?|help|ideas?"
    r"|requests?|details)"
    r"|(?:please )?(?:share|send|paste|tell|show|give|provide|confirm|try|clarify|explain|check"
    r"|upload|post|elaborate|describe|specify|wait|see))\b"
)
"""A question about the exchange: its answer directs what an assistant does now."""
_YES_OR_NO: Final = pattern(
    r"\W*(?:yes|yeah|yep|yup|ya|no|nope|nah|sure|of course|definitely|absolutely|indeed|always"
    r"|never|both|neither|none|either|all of them|not (?:really|yet|at all|any ?more)|sometimes"
    r"|often|rarely|oui|non|ja|nein|s[i\u00ed]|n\u00e3o|sim|\u306f\u3044"
    r"|\u3044\u3044\u3048|\u662f|\u4e0d)\b"
    r"(?:\W+(?:please|thanks|thank you|of course|indeed|never|not (?:really|at all|any ?more))\b)*"
    r"\W*"
)
_ONE_OF_TWO: Final = pattern(r"\W*the (?:first|second|former|latter|last)(?: one| option)?\W*")
_WHOLE: Final = pattern(
    r"\W*(?:I|I'\w+|we|we'\w+|he|she|there|my|our)\b"
    r"|.*\s(?:is|are|was|were|has|have|had|will|can|'s)\b"
)
"""How an answer begins that says by itself what it is about."""
_ELLIPTICAL: Final = pattern(
    r"\W*(?:I|we)(?:'m|'ve|\s+(?:do|did|am|are|was|were|have|had|can|will|would)(?:n't)?|\s+can't)?"
    r"(?:\s+not)?\W*$"
)
"""A sentence that leaves its verb to the question: "Yes, I do."."""
_REFERRING: Final = pattern(rf"\W*(?:{words_of('it that they those these this')}\b)")


def question_at_end(text: str) -> str:
    """Return the questions with which a text ends, ``""`` if it does not end with any."""
    asked: list[str] = []
    for sentence in reversed(sentences(text)):
        if not is_asking(sentence):
            if asked or not is_small_talk(sentence):
                break
        elif sum(map(len, asked)) + len(sentence) <= _LONGEST:
            asked.insert(0, sentence)
    return " ".join(asked)


def with_question(question: str, answer: str) -> str:
    """Return an answer behind the question it needs, ``""`` if it needs none or says nothing.

    A bare "No." is kept if it says something about the user: not if it only tells the assistant
    whether to go on.
    """
    is_short = len(answer) <= _LONGEST and len(answer.split()) <= _ANSWER_WORDS
    if not question or not is_short or is_asking(answer):
        return ""
    bare = answer[opening_end(answer) :]
    if _YES_OR_NO.fullmatch(answer) or _ELLIPTICAL.match(bare):
        needs_it = _asks_about_user(question)
    elif _ONE_OF_TWO.fullmatch(answer):
        needs_it = " or " in question and _asks_about_user(question)
    else:
        needs_it = _is_fragment(answer, bare)
    return f"{question} {answer}" if needs_it else ""


def _is_fragment(answer: str, bare: str) -> bool:
    """Return whether an answer says something, but not about what."""
    if is_made_of_small_talk(answer) or is_order(answer) or is_of_a_value_alone(answer):
        return False
    if statement(answer) is not None or (_WHOLE.match(bare) and not _REFERRING.match(bare)):
        return False
    return len(bare.split()) == 1 or not is_small_talk(answer)


def _asks_about_user(question: str) -> bool:
    last = sentences(question)[-1]
    return _TO_USER.search(last) is not None and _OFFERS.search(last) is None
