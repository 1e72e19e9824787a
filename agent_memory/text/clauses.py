"""The main clauses of a sentence, without reasons and afterthoughts.

"kasse listens on port 8085, because 5432 is taken" says that kasse listens on port 8085, and "Yuki
left, Benedikt is responsible for payments" says two things. What holds only on a condition is not
cut apart.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from agent_memory.text.phrases import pattern, words_of

_AND: Final = "(?:so|and|but|und|aber|et|mais|y|pero)"
_BECAUSE: Final = "(?:because|weil|parce que|porque|perché|omdat)"
_JOINT: Final = pattern(rf"([,;]\s+|\s+(?={_BECAUSE}\s)|\s+(?={_AND}\s))")
_REASON: Final = pattern(
    rf"(?:{_AND}\s+)?(?:{_BECAUSE}|(?:since|as|da|puisque|ya que)(?! (?:an?|long|for|of)\b))\b"
)
_LATER_REASON: Final = pattern(r"(?:denn|car)\b")
"""A reason that can only follow: a sentence may begin with "Car insurance"."""
_RELATIVE: Final = pattern(r"(?:which|who|whom|whose|where)\b")
_CONDITION: Final = pattern(
    rf"(?:{_AND}\s+)?(?:if|unless|when|whenever|while|until|once|except|provided|otherwise"
    r"|wenn|falls|sobald|solange|während|bis|sonst|si|sauf|quand|lorsque|cuando|mientras|salvo)\b"
)
_AFTER: Final = pattern(r"(?:after|before|nach|vor|après|avant|después de|antes de)\b")
_PERSON: Final = "(?:i|we|you|ich|wir|je|nous)(?:'\\w+)?"
_POINTING: Final = (
    "(?:s?he|they|it|this|that|these|those|er|sie|es|das|dies|ils?|elles?|on|ça|c'|ello|eso)\\b"
)
_OF: Final = "(?:the|my|our|his|her|their|der|die|das|mein|meine|unser|unsere|le|la|les|el|los|las)"
_WORD: Final = r"[\w.:-]+(?:'\w+)?"
_NO_VERB: Final = words_of(
    """
    and or of for in on at to with from by near not und oder nicht für in auf an mit von bei et ou
    de du des à pour avec pas y o con para
    """
)
_CLAUSE: Final = pattern(
    rf"(?:{_AND}\s+)?(?:now|jetzt)?\s*(?:{_PERSON}|{_POINTING}|{_OF}(?: {_WORD}){{1,3}}?"
    rf"|(?-i:[^\W_a-zß-öø-ÿ]){_WORD}(?: (?-i:[^\W_a-zß-öø-ÿ])[\w.-]*){{0,2}}?)"
    rf" (?!{_NO_VERB}\b)(?-i:[a-zß-öø-ÿ])\w+ \S"
    rf"|so (?!that\b)(?:{_WORD} ){{2,}}"
)
"""A subject and, most likely, its verb: "Ines tried it", but not "Notion for docs"."""
_POINTS: Final = pattern(rf"(?:{_AND}\s+)?{_POINTING}")
_LEAD: Final = pattern(rf"^{_AND}\s+")


class Clause(NamedTuple):
    """A main clause, and the afterthought that says before or after what, if there is one."""

    text: str
    when: str = ""


@lru_cache(maxsize=512)
def main_clauses(sentence: str) -> tuple[Clause, ...]:
    """Return the main clauses of a sentence; one that begins with "it" or "she" is empty.

    What such a clause is about is said in another. None are returned if there is a condition.
    """
    first, *rest = _JOINT.split(sentence.rstrip(" .!"))
    clauses: list[Clause] = []
    is_aside = _REASON.match(first) is not None
    if _CONDITION.match(first):
        return ()
    if not is_aside:
        clauses.append(_clause(first))
    for joint, piece in zip(rest[::2], rest[1::2], strict=True):
        if _CONDITION.match(piece):
            return ()
        if _REASON.match(piece) or _LATER_REASON.match(piece):
            is_aside = True
        elif clauses and _AFTER.match(piece):
            clauses[-1] = clauses[-1]._replace(when=piece)
        elif not clauses or (_CLAUSE.match(piece) and (not is_aside or "," in joint)):
            clauses.append(_clause(piece))
            is_aside = False
        elif clauses and clauses[-1].text and not (is_aside or _RELATIVE.match(piece)):
            clauses[-1] = clauses[-1]._replace(text=f"{clauses[-1].text}{joint}{piece}")
    return tuple(clauses)


def _clause(piece: str) -> Clause:
    return Clause("" if _POINTS.match(piece) else _LEAD.sub("", piece, count=1))
