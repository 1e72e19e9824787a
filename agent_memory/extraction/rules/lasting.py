"""What somebody tells of themselves that lasts: health, identity, relations, tastes, rules.

Such a memory is to be kept however seldom it is asked for, unlike what happened on a day ("I had
lunch with Ann today"). What is not recognised is kept as long as it is used.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.extraction.rules.changes import PAST
from agent_memory.extraction.rules.statements import (
    Statement,
    said_behind_opening,
    speaker_and_text,
    statement,
)
from agent_memory.text.careful_typing import carefully_typed
from agent_memory.text.phrases import pattern, words_of
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_asking, is_instruction, is_supposed

_WE: Final = r"(?:I|we)(?:'(?:ve|re|m)| have| am| are)?"
_USER: Final = r"(?:the )?user"
_KIN: Final = (
    r"(?:grand)?(?:mother|father|mom|mum|dad|parents|son|daughter|wife|husband|partner|brother"
    r"|sister|aunt|uncle|cousin)s?"
)
_PEOPLE: Final = (
    rf"(?:{_KIN}|(?:ex-?)?(?:wife|husband)|(?:girl|boy)?friend|colleague|boss|manager|neighbou?r"
    r"|landlord|doctor|teacher|roommate|flatmate|child|children|kid|baby|twin|family|team|company"
    r"|dog|cat|horse|pet)s?"
)
_OFTEN: Final = (
    r"(?: (?:also|both|all|even|still|now|always|never|not|just|only|no longer|hardly ever"
    r"|(?!(?:ap|im|re|sup)ply\b)\w{3,}ly)\b)*+"
)
_WHO: Final = (
    rf"(?:I|we|(?:(?:my|our)(?: (?!and\b)[\w-]+){{0,2}}? {_PEOPLE}|{_USER})"
    r"(?: (?-i:[A-Z])[\w-]+)?(?: and(?: (?:I|my|our|his|her))?(?: \w+)?)?)"
)
"""Who tells of themselves, or of whom they live and work with."""
_CLAUSE: Final = re.compile(r"[;:]\s+|,\s+(?:(?:and|but|so)\s+)?")
_AT_A_MOMENT: Final = pattern(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|just now|for now|so far"
    r"|(?:this|last|next) (?:morning|afternoon|evening|night|week|weekend|month|\w+day)"
    r"|(?:an?|\d+|\w+) (?:minute|hour|day|week)s? ago|in (?:an?|\d+) (?:minute|hour|day|week)s?"
    r"|(?<!never )on (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|heute|(?<!jeden )(?<!am )morgen|gestern|gerade|aujourd'hui|demain|hier(?! (?:in|bei)\b)|hoy"
    r"|(?<!la )ma\u00f1ana|ayer)\b"
)
_CHANGED: Final = pattern(
    rf"^(?:{_WE}|my|our|{_USER})\b.*?\b(?:moved (?:to|from|in with|out of)|relocated|emigrated"
    r"|switch(?:ed)? (?:\w+ ){0,3}?(?:from|to)\b|changed (?:my|our|\w+s\b)"
    r"|replaced (?:my|our|the)|sold (?:my|our|the)|closed (?:my|our) \w+ at"
    r"|(?:quit|left|joined|joining) (?-i:[A-Z])\w*|became|retired|divorced|adopted an?"
    r"|(?:quit|left|lost) (?:my|our) job|got (?:married|engaged|divorced|promoted)"
    r"|started (?:a new job|working (?:at|for|as))"
    r"|(?:stopped|quit) \w+ing|gave up \w+ing|no longer|(?:don't|doesn't) .{0,200}? any ?more"
    r"|went (?:up|down) to|(?:is|are) now)\b"
)
_BIOGRAPHY: Final = pattern(
    rf"^(?:(?:I|we|{_USER}) (?:(?:was|were) (?:born|raised|adopted|diagnosed|named)|grew up"
    r"|stud(?:y|ied) (?!for\b|hard\b|all\b)|majored|graduated|served|inherited|married)"
    r"|(?:I|we|my|our)\b.*\b(?:in|since) (?:19|20)\d\d\b"
    rf"|(?:my|our) (?:late )?{_KIN}(?: (?-i:[A-Z])\w+)? (?:was|were|built|founded|raised|died"
    r"|grew up|passed away|served|fought|emigrated|invented|wrote)\b)"
)
_COMES_UP: Final = words_of(
    """
    meeting appointment call question questions problem problems issue issues idea ideas clue bug
    bugs error errors feeling doubt headache cold cough fever throat hangover exam test flight train
    bus interview look chat deadline date minute minutes hour hours day days moment break time
    visitor visitors guest guests order parcel package delivery ticket reservation booking party
    wedding trip vacation holiday presentation demo lunch dinner surprise chance choice request
    favour favor task typo crash leak delay accident news thought fun trouble access signal luck
    energy internet option sense plan plans nothing something everything anything tab tabs reception
    """
)
"""What comes up or takes place, and is had for a while at most."""
_HELD_NOW: Final = words_of(
    "open left ready running pending going coming waiting here there installed done over"
)
"""How something is at the moment: "three tabs open", "ten minutes left"."""
_UNLIKE_A_NOUN: Final = (
    r"(?:to|not|been|done|seen|gone|made|got|found|lost|had|it|this|that|\w{2,}ed)"
)
_HAVE: Final = (
    rf"(?:have|has|own|owns){_OFTEN} (?!{_UNLIKE_A_NOUN}\b)"
    r"(?!(?:(?!(?:of|from|in|with|for|on|at|who|that|and)\b)\S+ ){0,4}?"
    rf"(?:{_COMES_UP}|{_HELD_NOW}|\w+aches?)\b)\w"
)
_IS_FOR_NOW: Final = (
    r"(?:\w+ing\b(?<!\bworking)(?<!\bliving)(?<!\bstudying)(?<!\blearning)"
    r"|(?!(?:retired|married|divorced|widowed|engaged|adopted|separated|disabled|based|named|called"
    r"|certified|qualified|licensed|vaccinated|gifted|(?:\w+-)?(?:employed|handed|sighted|impaired)"
    r"|\w+ed (?:of|to)|interested in (?!the|this|that|your|an?\b)|obsessed with)\b)\w{3,}ed\b"
    r"|back|here|there|off|out|over|away|home|late|early|busy|sick|ill|hungry|thirsty|cold|hot"
    r"|sorry|sure|certain|glad|happy|sad|angry|mad|ready|done|fine|good(?! at\b)|great|well"
    r"|ok(?:ay)?|stuck|lost|excited|curious|able|unable|supposed|just|so|very|too|really|quite"
    r"|a (?:bit|little|mess)|kind of|all|up|down|free|available|aware|full|gone|missing|wrong|dead"
    r"|about|almost|nearly|asleep|awake|alone|abroad|ashamed|afraid (?!of\b)"
    r"|the (?:only|first|last|next|one)|between(?! jobs)"
    r"|(?:at|on|in|with|for|by|under|behind|near|past|without|through|inside|within)"
    r"(?! (?:an? (?:[\w-]+ ){0,2}|the (?:\w+ )?)?(?:diet|band|choir|orchestra|club|team|board"
    r"|committee|union|relationship|wheelchair|medication|insulin|dialysis|antidepressants)\b))"
    r"(?![\w-])"
)
"""What somebody or something is at the moment: doing, done, or at a place."""
_IS: Final = pattern(rf"^{_WHO}(?:'(?:m|re)| am| are| is){_OFTEN} (?!{_IS_FOR_NOW}|been\b)\w")
_TRAIT: Final = words_of(
    """
    name surname nickname pronouns language tongue religion faith nationality citizenship passport
    hometown birthplace birthday anniversary address email number handle username gender height
    weight size age type pressure allergy allergies diet condition disability eyesight hearing
    profession occupation job role title position major degree hobby hobbies passion interest
    interests sport instrument goal dream fear phobia salary income rent stack editor timezone
    policy rule rules convention standard preference motto style tradition routine habit sign skin
    hair eyes health
    """
)
"""What somebody has one of, or of one kind, for years."""
_OF_THINGS: Final = pattern(
    rf"^(?:(?:my|our)(?: [^\s,;:.!?]+){{0,4}}? (?:{_TRAIT}|favou?rite(?: [\w-]+){{1,3}})"
    rf"|{_USER}'s(?: [\w-]+){{1,5}}?) (?:(?:is|are){_OFTEN} (?!{_IS_FOR_NOW})\w|expires\b|costs\b)"
    r"|^(?:my|our)(?: [^\s,;:.!?]+){1,5}? (?:(?:is|are)"
    r" (?:an? (?!bit\b|little\b|lot\b|mess\b|problem\b|pain\b|joke\b|nightmare\b|disaster\b"
    r"|shame\b|pity\b|surprise\b)\w|(?:written|hosted|based|located|built|made|owned|spelled"
    rf"|pronounced) )|{_HAVE}|expires\b|costs\b)"
    r"|^(?:likes|loves|hates|dislikes|prefers|is (?:allergic|afraid|an?)|name is|favou?rite)\b"
)
_LASTING_VERB: Final = (
    r"(?:"
    + words_of(
        """
        live reside dwell work teach manage lead head chair supervise serve volunteer tutor coach
        mentor freelance commute farm breed grow raise
        like love hate prefer enjoy dislike detest adore loathe fear favour favor admire
        eat drink smoke vape avoid abstain cook bake
        speak play sing swim dance ski cycle climb surf knit paint draw sail jog exercise meditate
        drive ride wear use rent share collect belong
        suffer react tolerate snore stutter struggle
        believe follow support identify pray worship observe celebrate come weigh sleep earn bank
        care cherish treasure
        """
    )
    + r"(?:e?s)?|stud(?:y|ies)|carr(?:y|ies)|(?:run|runs) (?:an?|my|our)"
    r"(?! (?:\w+ )?(?:test|script|command|query|job|build|program|scan|check|function)\b)"
    r"|(?:take|takes) (?:\d|an? (?:pill|tablet)|[a-z]+(?: for| every| before| daily))"
    r"|(?:get|wake)s? up|reports? to|codes? in|writes? for|keeps?(?! \w+ing\b)|looks? after"
    r"|(?:go|goes) (?:by|with|to (?:bed|church|mosque|synagogue|temple|therapy|school|university"
    r"|college|(?:the|a) (?:gym|pool|market)|(?-i:[A-Z])\w*))"
    r"|needs? (?:glasses|insulin|a wheelchair|hearing aids))"
)
"""What is done for years: home, work, tastes, food, skills, things in use, health, faith, kin."""
_CANNOT: Final = (
    r"(?:can't|cannot|can not) (?:eat|drink|stand|tolerate|digest|have|swim|drive|hear|see well"
    r"|walk|smell|cook|read)\b"
)
_AT_THIS: Final = (
    r"(?! (?:in |on |of )?(?:it|us|this|that|these|those|you|your|yours|what|how|why|whether|if)\b)"
)
_SCENE: Final = (
    r"(?!.*\b(?:and|but|then) (?:then )?(?:it|nothing|everything|get|gets|see|still"
    r"|the [\w ]{1,20}? (?:is|are|does|doesn't|won't|can't|stays|hangs|fails|crashes|breaks))\b)"
)
_DOES: Final = pattern(
    rf"^{_WHO}{_OFTEN}(?: (?:do not|don't|does not|doesn't))?{_OFTEN}"
    rf" (?:{_CANNOT}|{_HAVE}|{_SCENE}{_LASTING_VERB}\b{_AT_THIS})"
)
_HABIT: Final = re.compile(
    r"\b(?:always|never|usually|often|rarely|seldom|normally|generally|mostly|typically|regularly"
    r"|daily|weekly|every (?!time\b)(?:other |second )?\w+|each \w+|for a living"
    r"|(?:once|twice|\w+ times) (?:an?|per) \w+"
    r"|(?:\w+day|weekend|morning|afternoon|evening|night)s)\b",
    re.IGNORECASE,
)
_ACTS: Final = pattern(
    rf"^{_WHO}{_OFTEN}(?: (?:do not|don't|does not|doesn't))?{_OFTEN} (?P<verb>"
    r"(?!(?:have|has|am|are|is|was|were|can|could|will|would|shall|should|must|may|might|do|did|had"
    r"|need|want|think|guess|hope|wish|mean|see|wonder|suppose|agree|understand|remember|forget"
    r"|feel|felt|forgot|plan|know|knew|get|got|say|said|expect|assume|doubt|appreciate|promise|just"
    r"|find|found|try|look|ask|wait|cannot|hear|lose|notice|receive|face|miss|hit|press|click|tap"
    r"|keep|kept|end|run(?= (?:out|into)\b)|held|chose|sent|heard|brought|thought|set|put|wore)"
    r"\b)[a-z]{2,})\b"
)
_ANY_SUCH: Final = pattern(
    r" everything (?:in|on|with|by|as)\b"
    r"|(?: (?!(?:the|an?|my|our|your|his|her|their|this|that|some|all|these|those|no|in|on|out|up"
    r"|at|to|off|of|for|with|from|it|and)\b)[a-z]+)?"
    r" (?!(?:yes|its|always|sometimes|afterwards|perhaps)\b)[a-z]{2,}(?<![sui])s\b"
    r"(?! (?:and|but|when|it)\b)"
)
"""Things of a kind, and none in particular: "I repair violins"."""
_SINCE: Final = pattern(
    rf"^{_WHO}(?:'ve| have|'s| has){_OFTEN} (?!been waiting\b)(?:been|lived|worked|known|had|played"
    r"|owned|taught|spoken|smoked|studied|used)\b.*\b(?:for (?:\w+ ){0,3}?(?:years|decades|ages)"
    r"|since (?:(?:19|20)\d\d|(?:I|we) (?:was|were)|childhood|school|university|birth))\b"
)
_KIN_ABROAD: Final = (
    r"(?:frau|mann|freund(?:in)?|sohn|tochter|kind(?:er)?|bruder|schwester|mutter|vater|eltern|oma"
    r"|opa|chef(?:in)?|hund|katze|femme|mari|amie?|fils|fille|enfants?|fr\u00e8re|s\u0153ur"
    r"|m\u00e8re|p\u00e8re|parents|chien|chat)"
)
_ABROAD: Final = pattern(
    r"^(?:ich (?:bin (?:(?:eine?(?! bisschen)|(?-i:[A-Z\u00c4\u00d6\u00dc]))\w*|allergisch|vegan"
    r"|verheiratet|geschieden|ledig|verwitwet|\d+)"
    r"|habe (?:eine?n? |zwei |drei |keine )?(?!(?:frage|problem|termin|idee|hunger|durst|zeit|angst"
    r"|fehler|lust|\w*schmerzen|fieber|husten|urlaub|besuch)\b)(?-i:[A-Z\u00c4\u00d6\u00dc])"
    r"(?!.* (?-i:[a-z]*ge[a-z\u00e4\u00f6\u00fc\u00df]{2,}(?:t|en)|[a-z]+iert)\W*$)"
    r"|(?:wohne|lebe|arbeite|hei\u00dfe|mag|liebe|hasse|esse|trinke|rauche|spreche|spiele|studiere"
    r"|lerne|unterrichte|fahre|trage|bevorzuge|besitze|sammle|leide|leite|vertrage)\b"
    r"(?! (?:es|dies\w*)\b)(?!.* (?:ab|ein|los|weiter|nach hause)\W*$)"
    r"|\w+e (?:immer|nie|jeden|meistens|oft|t\u00e4glich)\b)"
    rf"|(?:mein|unser)e? {_KIN_ABROAD}(?: (?-i:[A-Z])\w+)?"
    r" (?:ist (?!\w+t\b|krank|m\u00fcde|da\b|weg\b)|sind|hei\u00dft|hat|lebt|wohnt|arbeitet)\b"
    r"|(?:mein|unser)e? [^\W\d_]+(?: \w+)? (?:ist|sind|hei\u00dft|lautet)"
    r" (?:eine? |am )?(?=\d|(?-i:[A-Z\u00c4\u00d6\u00dc]))"
    r"|j'(?:ai (?:\d+ ans|(?:\d|une?|deux|trois|des)"
    r" (?:fils|filles?|enfants?|fr\u00e8res?|s\u0153urs?|chiens?|chats?))|aime|adore|habite)\b"
    r"|je (?:suis (?:allergique|v\u00e9g\w+|une?|n\u00e9e?)|n'aime|d\u00e9teste|parle|travaille"
    r"|pr\u00e9f\u00e8re|vis|ne (?:mange|bois|fume))\b"
    rf"|(?:mon|ma|mes|notre|nos) {_KIN_ABROAD}(?: (?-i:[A-Z])\w+)?"
    r" (?:est (?!en\b|au\b|\u00e0\b)|sont|s'appelle|a \d)"
    r"|(?:mon|ma|mes|notre|nos) [^\W\d_]+(?: \w+)? (?:est|sont|s'appelle)"
    r" (?:l[ae]s? \w|l'|une? \w|\d|(?-i:[A-Z]))"
    r"|(?:yo )?(?:soy|me (?:gusta|encanta|llamo)|no me gusta"
    r"|tengo (?!que\b|una? (?:pregunta|problema|duda|cita|error|idea)\b|sue\u00f1o|hambre|sed\b"
    r"|tiempo|prisa)\w+|vivo"
    r"|trabajo|hablo|prefiero|odio|nac\u00ed|no (?:como|bebo|fumo))\b"
    r"|mis? [^\W\d_]+(?: \w+)? (?:es|son|se llama|tiene|vive|trabaja)\b)"
)
_IS_EACH_YEAR: Final = pattern(r"(?:birthday|anniversary|name day)$")
_IS_EVENT: Final = pattern(rf"\b{_COMES_UP}$")


def lasts(text: str) -> bool:
    """Return whether a text tells something of its speaker that lasts, or a rule to be followed."""
    _, spoken = speaker_and_text(text)
    parts = dict.fromkeys((*sentences(text), *sentences(spoken)))
    return any(_lasts(carefully_typed(part)) for part in parts)


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
        return _is_lasting_value(stated)
    if any(form.match(clause) for form in (_IS, _OF_THINGS, _DOES, _SINCE, _BIOGRAPHY, _ABROAD)):
        return True
    acts = _ACTS.match(clause)
    if acts is None or PAST.fullmatch(acts["verb"]):
        return False
    is_of_any = _ANY_SUCH.match(clause, acts.end()) is not None
    return is_of_any or _HABIT.search(clause) is not None


def _is_lasting_value(stated: Statement) -> bool:
    """Return whether a value lasts: a name or a number does, a date or a level will be past."""
    kind = stated.value.kind
    if kind.startswith(("number at", "number in")) or _IS_EVENT.search(stated.attribute):
        return False
    return kind != "date" or _IS_EACH_YEAR.search(stated.attribute) is not None
