"""A text as it is compared with others: who speaks, of whom, what is stated, denied, or over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from agent_memory.extraction.rules.changes import (
    Change,
    change_of,
    is_beside,
    is_changed,
    says_that_it_ended,
)
from agent_memory.extraction.rules.statements import (
    Statement,
    said_behind_opening,
    speaker_and_text,
    stated_in,
)
from agent_memory.text.careful_typing import carefully_typed
from agent_memory.text.quotations import has_quotation
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_asking, is_order
from agent_memory.text.stems import stems

_JUDGED: Final = 1_000
"""Characters of a text that are compared."""
SIGNS: Final = stems(
    "no not longer any more anymore never stopped quit gave up given don't doesn't isn't again now"
    " currently new just actually sorry correction after all these days from on instead can may use"
    " no wrong typo meant make left moved changed switched hate love like enjoy can't stand update"
    " always started turned against wieder doch"
    # how other languages deny, and their articles, which change with it: "du thé", "pas de thé"
    " nicht kein keine keinen keinem keiner keines nie niemals mehr ne pas plus jamais nunca jamás"
    " tampoco ya non più não mais niet geen nooit meer inte ikke aldrig aldri ingen"
    " не никогда больше der die das den dem ein eine einen le la les un une des du de el los las"
    " una il lo het een"
)
_ELIDED: Final = re.compile(r"\b([cdjlmnst]|qu)['\u2019](?=\w)", re.IGNORECASE)
"""French words that have lost their last letter: "j'aime", "je n'aime"."""
_KIN: Final = (
    "wife|husband|partner|girlfriend|boyfriend|fiancée?|son|daughter|kids?|children|child|brother"
    "|sister|mother|father|mom|mum|dad|parents|grandmother|grandfather|aunt|uncle|cousin|friend"
    "|boss|manager|colleague|roommate|flatmate|neighbou?r|dog|cat|landlord|ex"
)
# In other languages these count only after "my" and "our": German "Kind" is a child.
_MY_KIN_ABROAD: Final = (
    r"(?:mein|unser)e? (?:frau|mann|freund(?:in)?|sohn|tochter|kind|bruder|schwester|mutter|vater"
    r"|eltern|oma|opa|onkel|tante|chef(?:in)?|kolleg(?:e|in)|nachbar(?:in)?|hund|katze)"
    r"|(?:mon|ma|mes|notre|nos) (?:femme|mari|amie?|fils|fille|enfants?|frère|sœur|mère|père"
    r"|parents|oncle|tante|chef|collègue|voisine?|chien|chat)"
    r"|(?:mi|mis|nuestr[oa]s?) (?:mujer|esposa|marido|novi[oa]|amig[oa]|hij[oa]s?|herman[oa]|madre"
    r"|padre|padres|tí[oa]|jef[ea]|colega|vecin[oa]|perr[oa]|gat[oa])"
)
_OWNER: Final = re.compile(
    rf"(?i:my|our|his|her) (?:\w+ )?(?P<kin>(?i:{_KIN}))\b|(?P<abroad>(?i:{_MY_KIN_ABROAD}))\b"
    r"|(?P<name>[A-Z][a-z]+)"
    r"(?:'s|\u2019s| (?:is|was|has|had|does|doesn't|\w{2,}s|\w+ed|left|quit|sold|lost|gave)\b)"
)
_ANY_KIN: Final = re.compile(rf"\b(?:{_KIN})\b", re.IGNORECASE)
_NOBODY: Final = frozenset(
    """
    i we i'm we're use avoid prefer keep write run add send show format wrap indent name always
    never stop make treat ensure it this that there here he she they what the all every only just no
    user recently finally already then yesterday today eventually lately sadly unfortunately
    je tu il elle on nous vous ich du er sie wir ihr yo ella usted io lui lei noi eu ele ela ik hij
    jag
    """.split()
)
_STATES: Final = {
    "marital status": {
        "single": r"single",
        "married": r"(?:got |get |newly )?married|got hitched|tied the knot",
        "engaged": r"(?:got )?engaged(?! in)",
        "divorced": r"(?:got |getting |were )?divorced|separated|split up",
        "widowed": r"(?:was )?widowed|a widow(?:er)?",
        "together": r"in a relationship|seeing someone|dating someone",
    },
    "diet": {
        "vegetarian": r"(?:a )?vegetarian",
        "vegan": r"(?:a )?vegan",
        "pescatarian": r"(?:a )?pescatarian",
        "meat": r"(?:started eating|eat|eating) (?:meat|fish)|an? (?:omnivore|meat[- ]eater)",
    },
    "pregnancy": {
        "expecting": r"pregnant|expecting(?: a (?:baby|child))?",
        "born": r"(?:had|have had|gave birth to) (?:the|a|our|my) (?:baby|son|daughter|boy|girl)",
    },
    "employment": {
        "none": r"retired|unemployed|(?:was )?laid off|out of work|jobless|between jobs|lost my job"
        r"|quit my job|resigned|(?:got |been |was )?fired",
        "sought": r"(?:looking|searching) for (?:a (?:new )?)?(?:job|work)|job[- ]hunting",
        "new": r"(?:found|got|landed|started) (?:a|my) (?:new )?job",
    },
}
_VERBS: Final = "(?:am|are|have|been|just|now|got|recently|currently|finally)"
STATE_PATTERNS: Final = {
    slot: tuple(
        (
            re.compile(
                rf"^\W*(?:I|we)(?:['\u2019](?:m|ve|re))?(?: {_VERBS})* (?:{pattern})\b",
                re.IGNORECASE,
            ),
            value,
        )
        for value, pattern in values.items()
    )
    for slot, values in _STATES.items()
}
_OF_THING: Final = re.compile(
    # Red is a colour, and so is green, but of a build.
    r"(?=.*\b(?:builds?|tests?|CI|pipelines?)\b|(?!.* (?:is|are)\b.* (?:red|green)\b))"
    # A lamp may be broken and another work; Ann is up for a walk, and down for one.
    r"(?:(?:the|our|my) |(?!.* for )(?!(?:it|th\w+|s?he|we|you|I|\w*one|\w+(?:body|thing)|an?|some"
    r"|another|any|each|every|no|dad|mom|mum|\d+)\b))"
    r"(?P<thing>[\w -]{1,40}?) (?:(?:is|are) (?:(?:now|still|finally|again) )*(?:"
    r"(?P<fails>broken|down|failing|red|offline|out of order)"
    r"|fixed|repaired|up|back(?: up| online)?|working|passing|green|online)|works? (?:again|now))"
    r"(?: (?:again|now))?(?P<where> (?:on|in|for) [\w -]{1,40})?\W*",
    re.IGNORECASE,
)
"""Whether a thing works, without "on Mondays", but with "on main"."""
_DOER: Final = re.compile(
    r"\b(?:I['\u2019]m|am|is|being|not|never|longer)(?: [\w-]+){0,2}? an? (?:[\w-]+ ){0,2}?"
    r"(?P<noun>(?P<verb>[^\W\d_]{3,})(?:er|or))\b",
    re.IGNORECASE,
)
"""What somebody is who does something: a smoker."""
CLAUSE_JOINT: Final = re.compile(r"[,;:] | and (?=[Ii]\b|we\b|my\b|our\b|the\b)")


class Reading(NamedTuple):
    """A text as it is compared: who speaks, about whom, what is stated and denied."""

    speaker: str
    text: str
    owner: str
    statements: tuple[Statement, ...]
    states: tuple[tuple[str, str], ...]
    change: Change
    ended: tuple[frozenset[str], ...]
    """The stems of the text and of each clause in it that says outright that something ended."""
    stems: frozenset[str]
    is_one_sentence: bool
    doers: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """The stems of what somebody is ("a smoker"), and of what such a person does ("smoking")."""
    is_quoted: bool = False
    """Whether it has a text of somebody else, which is compared with nothing."""


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Read a text."""
    speaker, typed = speaker_and_text(text[:_JUDGED])
    spoken = carefully_typed(typed)
    parts = sentences(spoken)
    label = f"{speaker}: " if speaker else ""
    bare = said_behind_opening(spoken)
    owner = _OWNER.match(bare)
    named = ((owner["kin"] or owner["abroad"] or owner["name"]) if owner else "").lower()
    # As it was typed: whether a value may be a name depends on the capitals of its author.
    is_quoted = has_quotation(typed)
    own = () if is_quoted else sentences(typed)
    statements = tuple(stated for part in own for stated in _stated(label, part))
    states = (state for part in parts for state in _states(said_behind_opening(part)))
    ended = (
        content_of(clause)
        for clause in (spoken, *(piece for part in parts for piece in CLAUSE_JOINT.split(part)))
        if says_that_it_ended(clause)
    )
    change = change_of(spoken)
    if change.is_beside and len(statements) == 1:
        # "My second car", "the budget for the trip": a slot's name says nothing about its value.
        rest = spoken.lower().replace(statements[0].attribute, "")
        change = change._replace(is_beside=is_beside(rest), is_changed=is_changed(rest))
    if len(parts) == 1 and (is_asking(spoken) or is_order(spoken)):
        change = change._replace(is_guessed=True)
    return Reading(
        speaker="" if speaker.lower() in ("user", "the user") else speaker.lower(),
        text=bare,
        owner="" if named in _NOBODY else named,
        statements=statements,
        states=tuple(states),
        change=change,
        ended=tuple(words for words in ended if words),
        stems=stems(_ELIDED.sub(r"\1e ", spoken)),
        is_one_sentence=len(parts) == 1,
        doers=tuple(
            (stems(match["noun"]), stems(f"{match['verb']}ing")) for match in _DOER.finditer(bare)
        ),
        is_quoted=is_quoted,
    )


def _states(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield the states that a sentence says somebody or something is in: of what, and which."""
    for slot, values in STATE_PATTERNS.items():
        for pattern, value in values:
            if pattern.match(sentence):
                yield slot, value
    if match := _OF_THING.fullmatch(sentence):
        thing = f"{match['thing']}{match['where'] or ''}".lower()
        yield f"state of {thing}", "fails" if match["fails"] else "works"


def _stated(label: str, sentence: str) -> Iterator[Statement]:
    """Return what a sentence states, and what it states besides after "and" or a pause."""
    if (whole := stated_in(label + sentence)) is not None:
        yield whole
    for clause in CLAUSE_JOINT.split(sentence)[1:]:
        if (part := stated_in(label + clause)) is not None:
            yield part._replace(says_more=True)


def people_of(text: str) -> frozenset[str]:
    """Return whom a text is about, as far as it says: kin, and the name that it begins with."""
    kin = {match[0].lower() for match in _ANY_KIN.finditer(text[:_JUDGED])}
    owner = read(text).owner
    return frozenset(kin | ({owner} - {"", "user", "the user"}))


def content_of(text: str) -> frozenset[str]:
    """Return the stems of a text, without those that say that it changes or is denied."""
    return stems(_ELIDED.sub(r"\1e ", text)) - SIGNS
