"""What somebody tells of themselves that lasts: health, identity, relations, tastes, rules.

Such a memory is to be kept however seldom it is asked for, unlike what happened on a day ("I had
lunch with Ann today"). What is not recognised is kept as long as it is used.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.extraction.rules.changes import PAST
from agent_memory.extraction.rules.statements import (
    said_behind_opening,
    speaker_and_text,
    statement,
)
from agent_memory.text.phrases import pattern
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_asking, is_instruction, is_supposed

_WE: Final = r"(?:I|we)(?:'(?:ve|re|m)| have| am| are)?"
_USER: Final = r"(?:the )?user"
_KIN: Final = (
    r"(?:grand)?(?:mother|father|mom|mum|dad|parents|son|daughter|wife|husband|partner|brother"
    r"|sister|aunt|uncle|cousin)s?"
)
_PEOPLE: Final = (
    rf"(?:{_KIN}|(?:girl|boy)?friend|colleague|boss|neighbou?r|landlord|doctor|teacher|roommate"
    r"|flatmate|child|kid|baby|family|team|company|dog|cat)"
)
_OFTEN: Final = r"(?: (?:also|still|now|always|never|not|just|no longer|hardly ever|\w+ly))*"
_CLAUSE: Final = re.compile(r"[;:]\s+|,\s+(?:(?:and|but|so)\s+)?")
_AT_A_MOMENT: Final = pattern(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|just now|for now|so far"
    r"|(?:this|last|next) (?:morning|afternoon|evening|night|week|weekend|month|\w+day)"
    r"|(?:an?|\d+|\w+) (?:minute|hour|day|week)s? ago|in (?:an?|\d+) (?:minute|hour|day|week)s?"
    r"|(?<!never )on (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|heute|morgen|gestern|gerade|aujourd'hui|demain|hier|hoy|ma\u00f1ana|ayer)\b"
)
_CHANGED: Final = pattern(
    rf"^(?:{_WE}|my|our|{_USER})\b.*?\b(?:moved (?:to|from|in with|out of)|relocated|emigrated"
    r"|switch(?:ed)? (?:\w+ ){0,3}?(?:from|to)\b|changed (?:my|our|\w+s\b)"
    r"|replaced (?:my|our|the)|sold (?:my|our|the)|closed (?:my|our) \w+ at"
    r"|(?:quit|left|joined|joining) (?-i:[A-Z])\w*|became|retired|divorced|adopted an?"
    r"|got (?:married|engaged|divorced|promoted)|started (?:a new job|working (?:at|for|as))"
    r"|(?:stopped|quit) \w+ing|gave up \w+ing|no longer|(?:don't|doesn't) .* any ?more"
    r"|went (?:up|down) to|(?:is|are) now)\b"
)
_BIOGRAPHY: Final = pattern(
    rf"^(?:(?:I|we|{_USER}) (?:(?:was|were) (?:born|raised|adopted|diagnosed|named)|grew up"
    r"|stud(?:y|ied) (?!for\b|hard\b|all\b)|majored|graduated|served|inherited|married)"
    r"|(?:I|we|my|our)\b.*\b(?:in|since) (?:19|20)\d\d\b"
    rf"|(?:my|our) (?:late )?{_KIN}(?: (?-i:[A-Z])\w+)? (?:was|were|built|founded|died|grew up"
    r"|passed away|served|fought|emigrated|invented|wrote)\b)"
)
_PASSING: Final = (
    r"(?:\w+ing\b(?<!\bworking)(?<!\bliving)(?<!\bstudying)(?<!\blearning)|back|here|there|in|at|on"
    r"|off|out|over|away|home|late|early|busy|tired|sick|ill|hungry|thirsty|cold|hot|sorry|sure"
    r"|certain|glad|happy|sad|angry|mad|ready|done|fine|good|great|well|ok(?:ay)?|stuck|lost"
    r"|confused|excited|worried|bored|curious|interested|able|unable|about|supposed|just|so|very"
    r"|too|really|quite|a (?:bit|little)|kind of|with|for|all|up|down|free|available|aware"
    r"|surprised|impressed|stressed|annoyed|frustrated|broken|red|slow|empty|full|gone|missing"
    r"|wrong|dead|finished|delayed|cancelled|failed)\b"
)
_IS: Final = pattern(
    rf"^(?:I|we)(?:'(?:m|re)| am| are){_OFTEN} (?:on an? [\w-]+ diet\b|(?!{_PASSING})\w)"
    rf"|^(?:(?:my|our)(?: [^\s,;:.!?]+){{1,5}}?|{_USER}(?:'s(?: [\w-]+){{1,5}}?)?)"
    rf" (?:(?:is|are|has|have){_OFTEN} (?!{_PASSING}|been\b|just\b|\w+ed\b(?! (?:of|to)\b))"
    r"|can't (?:eat|drink|stand|tolerate|swim|hear|see|walk)\b"
    r"|expires\b|costs\b)"
    rf"|^(?:my|our) (?:\w+ )?{_PEOPLE}(?: (?-i:[A-Z])[\w-]+)?"
    r" (?!(?:was|needs|says|wants|thinks|looks|seems|starts|arrives|leaves)\b)[a-z]+s\b \w"
    r"|^(?:likes|loves|hates|dislikes|prefers|is (?:allergic|afraid|an?)|name is|favou?rite)\b"
)
_DOES: Final = pattern(
    rf"^(?:I|we){_OFTEN}(?: (?:do not|don't))?{_OFTEN} (?:"
    r"(?:can't|cannot) (?:eat|drink|stand|tolerate|digest|have|swim|drive|hear|see well)"
    r"|have(?! (?:to|not|been|done|seen|got to|(?:an?|the|my|this|that|some|another) (?:\w+ )?"
    r"(?:meeting|appointment|call|question|problem|issue|idea|bug|error|feeling|headache|cold|exam"
    r"|test|flight|interview|look|chat))\b|\s\w+ed\b)"
    r"|(?!(?:have|am|are|was|were|can|could|will|would|shall|should|must|may|might|do|did|had|need"
    r"|want|think|guess|hope|wish|mean|see|wonder|suppose|believe|agree|understand|remember|forget"
    r"|feel|forgot|plan|know|get(?! up)|got|say|said|expect|assume|doubt|appreciate|promise|just"
    r"|find|found|try|look|ask|wait|cannot)\b)(?P<verb>[a-z]{2,}))\b"
    r"(?! (?:it|this|that|these|those|you|your|yours|what|how|why|whether|if)\b)"
)
_ABROAD: Final = pattern(
    r"^(?:ich (?:bin|habe|mag|(?!(?:muss|m\u00f6chte|will|kann|soll|brauche|denke|glaube|gehe|hoffe"
    r"|meine|finde|frage|suche|komme)\b)\w+e)\b"
    r"|meine? [^\W\d_]+(?: \w+)? (?:ist|sind|hei\u00dft|hat)\b"
    r"|j'(?:ai (?:\d|une? (?:fils|fille|fr\u00e8re|s\u0153ur|chien|chat))|aime|adore|habite)\b"
    r"|je (?:suis (?:allergique|v\u00e9g\w+|une?|n\u00e9e?)|n'aime|d\u00e9teste|parle|travaille"
    r"|pr\u00e9f\u00e8re|vis|ne (?:mange|bois|fume))\b"
    r"|m(?:on|a|es) [^\W\d_]+(?: \w+)? (?:est|sont|s'appelle)\b"
    r"|(?:yo )?(?:soy|me (?:gusta|encanta|llamo)|no me gusta"
    r"|tengo (?!que\b|una? (?:pregunta|problema|duda|cita)\b|sue\u00f1o|hambre|sed\b)\w+|vivo"
    r"|trabajo|hablo|prefiero|odio|nac\u00ed|no (?:como|bebo|fumo))\b"
    r"|mis? [^\W\d_]+(?: \w+)? (?:es|son|se llama|tiene)\b)"
)


def lasts(text: str) -> bool:
    """Return whether a text tells something of its speaker that lasts, or a rule to be followed."""
    _, spoken = speaker_and_text(text)
    return any(map(_lasts, dict.fromkeys((*sentences(text), *sentences(spoken)))))


def _lasts(sentence: str) -> bool:
    if is_instruction(sentence):
        return True
    if is_asking(sentence) or is_supposed(sentence):
        return False
    statements = said_behind_opening(sentence)
    clauses = list(dict.fromkeys((statements, *_CLAUSE.split(statements))))
    if any(_CHANGED.match(clause) for clause in clauses):
        return True
    return not _AT_A_MOMENT.search(statements) and any(map(_is_lasting, clauses))


def _is_lasting(clause: str) -> bool:
    stated = statement(clause)
    if stated is not None and stated.subject == "" and stated.whose != "the":
        return True
    does = _DOES.match(clause)
    is_habit = does is not None and not (does["verb"] and PAST.fullmatch(does["verb"]))
    return is_habit or any(form.match(clause) for form in (_IS, _BIOGRAPHY, _ABROAD))
