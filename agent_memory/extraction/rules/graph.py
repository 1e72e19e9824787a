"""Relationships without a language model: few patterns, each for something that is said plainly.

Nothing is read from questions, from what is denied, hypothetical, wished for or past, from pronouns
whose meaning a sentence alone does not tell, or from ends that are no names. If unsure, it finds
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from agent_memory.extraction.rules.statements import said_behind_opening, speaker_and_text
from agent_memory.models.graph import (
    USER_NAME,
    EdgeView,
    GraphAction,
    GraphUpdate,
    clean_name,
    clean_relationship,
    name_key,
)
from agent_memory.text.quotations import has_quotation
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_denied, is_order, is_supposed

_SURE: Final = 0.8
_TASTES: Final = frozenset(
    {"likes", "loves", "enjoys", "prefers", "adores", "hates", "dislikes", "is_allergic_to"}
)
"""For each thing, a person has only one of these at a time."""
_LIKING: Final = _TASTES - {"hates", "dislikes", "is_allergic_to"}
_APOSTROPHE: Final = "['\u2019]"
_BE: Final = rf"(?: am| is|{_APOSTROPHE}m|{_APOSTROPHE}s)"
_HAVE: Final = rf"(?:{_APOSTROPHE}ve| have| has)?"
_ADVERB: Final = (
    r"(?: (?:now|also|still|really|especially|absolutely|currently|just|always|both|severely"
    r"|recently|totally))*"
)
_TASTE: Final = "like|love|enjoy|prefer|adore|hate|dislike"
_KIN: Final = (
    "sister brother son daughter wife husband mother father dog cat pet friend cousin uncle aunt"
    " niece nephew partner girlfriend boyfriend roommate".split()
)
_WHO: Final = (
    r"(?P<who>I|[Tt]he user|[A-Z][\w\u2019'-]*[\w](?: [A-Z][\w\u2019'-]*\w){0,2}|[A-Z]\w*)"
)
_NAME: Final = (
    # "I live in Oslo and I work at Acme" ends before the second I.
    r"(?P<what>[A-Z0-9][\w.&\u2019'-]*"
    r"(?: (?:(?:of|de|la|the|and|&) )?(?!I\b)[A-Z0-9][\w.&'-]*){0,4})"
)
_THING: Final = r"(?P<what>\S.*)"
_FIRST: Final = r"(?P<what>\S.*?)(?= and (?:the|an?)\b|$)"
_LANGUAGE: Final = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*"
# "I speak English and Ann speaks Dutch" ends before Ann.
_LANGUAGES: Final = rf"(?P<what>{_LANGUAGE}(?:(?:, and |, | and ){_LANGUAGE}\b(?! [a-z]+s\b))*)"
_NAMED: Final = rf"(?:named|called) {_NAME}"
_KINDS: Final = "|".join(_KIN)
_WHICH: Final = "(?:(?:other|eldest|elder|oldest|older|youngest|younger|little|big|twin|best) )?"
# "I taught my son French" names no son: after most verbs, what follows may be another object.
_MY_KIN: Final = re.compile(
    r"(?:^|\b(?:with|and|for|to|from|of|about|by|meet|met|visit|visited|miss|love|see|saw|took"
    r"|married) )"
    rf"(?P<who>[Mm]y) {_WHICH}(?P<kin>{_KINDS}) (?P<what>[A-Z][a-z\u00df-\u00ff-]+)(?![\w&])"
)
_NO_KIN: Final = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december christmas easter english french spanish german
    italian dutch portuguese chinese japanese russian arabic latin greek
    """.split()
)

# In each, the group ``what`` is the other end; the groups may also name the relationship.
_FORMS: Final = tuple(
    (re.compile(rf"{pattern}(?P<rest>.*)"), relationship)
    for pattern, relationship in (
        (rf"{_WHO}{_BE}{_ADVERB} allergic to {_THING}", "is_allergic_to"),
        (
            rf"{_WHO}{_ADVERB} (?P<taste>{_TASTE})(?P<s>s?) {_THING}",
            "",
        ),
        (rf"{_WHO}{_ADVERB} lives? in (?:the )?{_NAME}", "lives_in"),
        (rf"{_WHO}{_BE}{_ADVERB} living in (?:the )?{_NAME}", "lives_in"),
        (
            rf"{_WHO}{_HAVE}{_ADVERB} (?:moved|relocated)(?: back)? to (?:the )?{_NAME}",
            "lives_in",
        ),
        (rf"{_WHO}{_ADVERB} works? (?:at|for) (?:the )?{_NAME}", "works_at"),
        (rf"{_WHO}{_BE}{_ADVERB} working (?:at|for) (?:the )?{_NAME}", "works_at"),
        (rf"{_WHO}{_ADVERB} works? as (?:an? )?{_THING}", "works_as"),
        (rf"{_WHO}{_BE}{_ADVERB} married to {_NAME}", "is_married_to"),
        (rf"{_WHO}{_BE}{_ADVERB} planning a trip to (?:the )?{_NAME}", "plans_trip_to"),
        (rf"{_WHO}{_ADVERB} speaks? {_LANGUAGES}", "speaks"),
        (rf"{_WHO}{_ADVERB} ha(?:ve|s) an? (?:\w+ )?(?P<kin>{_KINDS}) {_NAMED}", ""),
        (rf"(?P<who>[Mm]y) {_WHICH}(?P<kin>{_KINDS}){_APOSTROPHE}s name is {_NAME}", ""),
        (rf"(?P<who>[Mm]y) {_WHICH}(?P<kin>{_KINDS}) is (?:named|called) {_NAME}", ""),
        (rf"{_WHO}{_ADVERB} own(?P<s>s?) (?:the |an? )?(?!up\b){_FIRST}", "owns"),
        (rf"(?P<who>[Mm]y) name is {_NAME}", "is_named"),
    )
)
_NO_LONGER: Final = re.compile(
    rf"{_WHO}(?:{_BE})? no longer (?P<verb>likes?|loves?|enjoys?|prefers?|lives? in"
    r"|owns?|speaks?|works? (?:at|for)|living in|working (?:at|for)|married to|allergic to)"
    rf" (?:the )?{_THING}"
)
_ANY_MORE: Final = re.compile(
    rf"{_WHO} do(?:es)?(?: not|n{_APOSTROPHE}t)"
    r" (?P<verb>like|love|enjoy|speak|live in|work (?:at|for)) (?:the )?"
    r"(?P<what>\S.*?) any ?more\b.*"
)
_QUIT: Final = re.compile(
    rf"{_WHO}{_ADVERB} quit (?:my|his|her|their|the) job at (?:the )?{_NAME}.*"
)
_VERBS: Final = {
    "live in": "lives_in", "living in": "lives_in", "work at": "works_at", "work for": "works_at",
    "working at": "works_at", "working for": "works_at", "married to": "is_married_to",
    "allergic to": "is_allergic_to",
}  # fmt: skip

_UNSURE: Final = re.compile(
    rf"\?|\"|\b(?:thinks?|thought|dreams?|never|pretend|joking|almost|said|says|told|asked|should"
    rf"|once|until|was|were|had|will|going to|{_APOSTROPHE}ll|{_APOSTROPHE}d)\b",
    re.IGNORECASE,
)
_CUT: Final = re.compile(
    r"[,;:.!?()]|\s[-\u2013\u2014]\s|\s(?:because|since|when|while|but|although|though|so|which|who"
    r"|that|where|as|such as|like|after|before|with|for|from|than|over|more|and (?:I|he|she|we|they"
    r"|my|it|am|is|has|have|works?|lives?|likes?|loves?|hates?|enjoys?|prefers?|plans?))\b"
)
# "In Rome, not Oslo" is in Rome; "in Rome, not any more" is not.
_INSTEAD_OF: Final = re.compile(rf", (?:and )?not (?:the |in |at |for )?{_NAME}$")
_TAIL: Final = re.compile(
    r"\s(?:a lot|very much|so much|too|now|these days|again|right now|currently|as well|lately"
    r"|at the moment|nowadays|any ?more|the most|best|in general|last \w+|next \w+|this \w+"
    r"|in (?:the )?(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December|summer|winter|spring|autumn|\d{4}).*)$"
)
_BEGINS_NOTHING: Final = frozenset(
    "to when how what being everything nothing something anything someone everyone there here"
    " doing having going both all some any many".split()
)
_POINTING: Final = frozenset(
    "it him her them this that these those my your his our their you me us myself".split()
)
_NOBODY: Final = frozenset(
    "the this that these those it he she we they you my your his her our their who what which"
    " everyone nobody people someone somebody anybody everybody but and so or if when while as"
    " there here not no also now then yes well oh ok okay hey hi maybe many most some all both each"
    " today yesterday tomorrow please remember note".split()
)
_LABELS: Final = frozenset(
    """
    answer context customer definition email example headline hint input lyrics message original
    output paragraph paraphrase passage phrase poem prompt proofread question quote reminder
    rephrase result sentence song story subject summary task text title topic transcribe translation
    warning
    """.split()
)
"""What is before a colon and is nobody's name, beside the verbs of orders ("Translate: …")."""
_PAIRS: Final = frozenset({"mac cheese", "fish chips", "rock roll", "bread butter", "salt pepper",
                           "peanut jelly", "ham eggs", "gin tonic"})  # fmt: skip
_MOST_WORDS: Final = 6


def graph_updates_by_rules(
    text: str, *, edges: Sequence[EdgeView] = (), speakers: Collection[str] = ()
) -> list[GraphUpdate]:
    """Return what a memory says about the graph, in its order, without repeats.

    "I" and "my" are the user, unless the text begins with a name ("Alice: I …"): a capitalized one,
    or one of the conversation's ``speakers``. ``edges`` are the open relationships: among them
    "loves" replaces "likes" for the same thing.
    """
    label, spoken = speaker_and_text(text)
    if has_quotation(spoken) or (label and not _is_speaker(label, speakers)):
        return []
    who = label if label and name_key(label) != USER_NAME.lower() else USER_NAME
    by_key: dict[tuple[str, str, str, str], GraphUpdate] = {}
    for sentence in sentences(spoken):
        for action, source, relationship, target in _read(sentence, who):
            update = GraphUpdate(
                action=action,
                source=source,
                relationship=relationship,
                target=target,
                confidence=_SURE,
            )
            key = (action.value, name_key(source), relationship, name_key(target))
            by_key.setdefault(key, _compared(update, edges))
    return list(by_key.values())


def _is_speaker(label: str, speakers: Collection[str]) -> bool:
    """Return whether what is before a colon is somebody's name.

    "Translate: I live in Madrid" and "My brother said: I live in Bergen" name no speaker.
    """
    if label in speakers or name_key(label) == USER_NAME.lower():
        return True
    words = label.lower().split()
    if label.lower() in ("assistant", "system", "ai") or not _NOBODY.isdisjoint(words):
        return False
    if len(words) == 1 and (words[0] in _LABELS or is_order(label)):
        return False
    return len(words) <= 3 and not any(word[0].islower() for word in label.split())


def _read(sentence: str, speaker: str) -> Iterator[tuple[GraphAction, str, str, str]]:
    line = sentence.rstrip(" .!")
    if len(line) > 300 or is_supposed(line) or _UNSURE.search(line):
        return
    for kin in _MY_KIN.finditer(line):
        if kin["what"].lower() not in _NO_KIN:
            yield from _updates(GraphAction.ADD, kin, _relationship(kin), speaker)
    line = said_behind_opening(line)
    for pattern in (_NO_LONGER, _ANY_MORE, _QUIT):
        if match := pattern.fullmatch(line):
            verb = match.groupdict().get("verb") or "work at"
            yield from _updates(GraphAction.DELETE, match, _verb(verb), speaker)
            return
    line = _INSTEAD_OF.sub("", line)
    if is_denied(line):
        return
    for pattern, relationship in _FORMS:
        if match := pattern.match(line):
            yield from _updates(
                GraphAction.ADD, match, relationship or _relationship(match), speaker
            )
            return


def _relationship(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"has_{groups['kin']}" if groups.get("kin") else f"{groups['taste']}s"


def _verb(verb: str) -> str:
    head, _, rest = verb.partition(" ")
    plain = f"{head.removesuffix('s')} {rest}".strip()
    return _VERBS.get(plain) or _VERBS.get(verb) or clean_relationship(f"{plain}s")


def _updates(
    action: GraphAction, match: re.Match[str], relationship: str, speaker: str
) -> Iterator[tuple[GraphAction, str, str, str]]:
    source = _subject(match["who"], speaker)
    # "Sounds like fun" and "It's like air" express nobody's tastes.
    agrees = match.groupdict().get("s") in (None, "" if match["who"] == "I" else "s")
    if source is None or not agrees:
        return
    for target in _targets(match["what"], relationship):
        if name_key(target) != name_key(source):
            yield action, source, relationship, target


def _subject(who: str, speaker: str) -> str | None:
    if who in ("I", "My", "my"):
        return speaker
    words = who.lower().split()
    if who.lower() in ("user", "the user"):
        return USER_NAME
    is_name = _NOBODY.isdisjoint(words) and not re.search(_APOSTROPHE, who)
    return who if is_name else None


def _targets(what: str, relationship: str) -> Iterator[str]:
    """Yield the things that an end names: one, or those of a list; nothing if that is unsure."""
    is_cut = relationship in _TASTES or relationship in ("works_as", "owns")
    cut = _CUT.search(what) if is_cut else None
    if relationship == "speaks":
        parts = re.split(r", (?:and )?| and ", what)
    elif cut is not None and cut[0].startswith(",") and _is_list(what):
        parts = re.split(r",\s*(?:and\s+)?|\s+and\s+", what)
    else:
        parts = _split(what[: cut.start()] if cut else what)
    for part in parts:
        thing = part.strip()
        while (shorter := _TAIL.sub("", f" {thing}").strip()) != thing:
            thing = shorter
        if _is_thing(thing, is_taste=relationship in _TASTES, cut=cut[0].strip() if cut else ""):
            yield clean_name(thing)


def _is_thing(text: str, *, is_taste: bool, cut: str) -> bool:
    """Return whether a text names something understandable alone; ``cut`` came after it."""
    words = text.lower().split()
    if not 0 < len(words) <= _MOST_WORDS or len(text) < 2 or not _POINTING.isdisjoint(words):
        return False
    if words[0] in _BEGINS_NOTHING or words.count("and") > int(len(words) <= 4):
        return False
    # "I love the colors" is about what was just seen, "spending time" with somebody is incomplete.
    is_of_the_moment = is_taste and words[0] == "the" and text[4:5].islower()
    is_half = cut in ("that", "which", "who", "where") or (
        cut.isalpha() and words[0].endswith("ing")
    )
    return not is_of_the_moment and not is_half


def _is_list(what: str) -> bool:
    return (
        re.fullmatch(r"[\w'-]+(?: [\w'-]+)?(?:, [\w'-]+(?: [\w'-]+)?)*,? and [\w'-]+", what)
        is not None
    )


def _split(what: str) -> list[str]:
    """Return the two of "pasta and pizza", but not of "fish and chips"."""
    two = re.fullmatch(r"([a-z]+) and ([a-z]+)", what.strip())
    if two is None or f"{two[1]} {two[2]}" in _PAIRS:
        return [what]
    return [two[1], two[2]]


def _compared(update: GraphUpdate, edges: Sequence[EdgeView]) -> GraphUpdate:
    """Return a change adapted to what is known about the same thing."""
    if update.relationship not in _TASTES:
        return update
    held = [
        edge.relationship
        for edge in edges
        if edge.relationship in _TASTES
        and name_key(edge.source, edge.user_id) == name_key(update.source, edge.user_id)
        and name_key(edge.target) == name_key(update.target)
    ]
    if len(held) != 1 or held[0] == update.relationship:
        return update
    if update.action is GraphAction.ADD:
        change = {"action": GraphAction.UPDATE, "old_relationship": held[0]}
        return update.model_copy(update=change)
    # Somebody who no longer likes what they love does not love it either.
    is_less = update.relationship in _LIKING and held[0] in _LIKING
    return update.model_copy(update={"relationship": held[0]}) if is_less else update
