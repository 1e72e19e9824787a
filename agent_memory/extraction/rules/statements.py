"""Statements: about whom, which slot, which value. "I live in Oslo": the user, home, Oslo.

A slot holds one value at a time: of two values of one kind the later is true. A text about a slot
that is not a value of its kind ("My budget is tight") is beside its value, and changes nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from agent_memory.extraction.rules.answers import as_statement
from agent_memory.extraction.rules.changes import MISTAKE, NO, RECENTLY
from agent_memory.extraction.rules.values import DATE, NAME, TIME, WORDS, Value, value_of
from agent_memory.text.careful_typing import carefully_typed
from agent_memory.text.normalize import exact_form
from agent_memory.text.quotations import has_quotation
from agent_memory.text.sentences import sentences
from agent_memory.text.small_talk import opening_end
from agent_memory.text.speech_acts import is_denied, is_supposed

_APOSTROPHE: Final = "['\u2019]"
_LONGEST: Final = 200
"""Maximum characters of a sentence that can be one statement."""
_NOW: Final = (
    r"(?:(?:now|currently|just|recently|finally|also|have|has|actually|since|presently|still)\s+)*"
)
_VALUE: Final = r"(?P<value>[^\s.!?;][^.!?;]*(?:(?:[.!?](?=\S)|\.(?= \S))[^.!?;]*)*)"
"""Inside a sentence, a full stop followed by a space ends nothing: "St. Louis"."""
_PERSON: Final = r"(?-i:[A-Z][\w-]{0,30})"
_WHO: Final = rf"(?P<who>(?:I|we)(?:{_APOSTROPHE}(?:ve|re|d|ll))?|{_PERSON})"
_AM: Final = (
    rf"(?:(?P<me>I(?:{_APOSTROPHE}m| am)|we(?:{_APOSTROPHE}re| are))"
    rf"|(?P<he>{_PERSON})(?:{_APOSTROPHE}s| is))"
)
_WHOSE: Final = rf"(?P<whose>my|our|the|{_PERSON}{_APOSTROPHE}s)"
_FROM: Final = r"(?:from (?P<origin>[^,;.!?]{1,40}?) )?"
HOME, EMPLOYER, JOB, BEING, NAMED, AGE = "home", "employer", "job", "being", "name", "age"
# For each slot, what is said before its value. <who> is its owner: "I", "User", a name.
_FORMS: Final = (
    (rf"<who> {_NOW}(?:live|lives|reside|resides|dwell|dwells|settled) {_NOW}in ", HOME),
    (rf"<am> {_NOW}(?:living|based|residing|settled) {_NOW}in ", HOME),
    (rf"<who> {_NOW}(?:moved|relocated) (?:back )?(?:over )?{_FROM}to ", HOME),
    (rf"<whose> (?:new |current )?(?:home|home town is now|city|town) is {_NOW}(?:in )?", HOME),
    (rf"<who> {_NOW}(?:work|works) {_NOW}(?:at|for) ", EMPLOYER),
    (rf"<am> {_NOW}(?:working|employed) {_NOW}(?:at|for|by|with) ", EMPLOYER),
    (rf"<who> {_NOW}started (?:working |a (?:new )?job )?(?:at|for|with) ", EMPLOYER),
    (rf"<who> {_NOW}joined ", EMPLOYER),
    (rf"<who> {_NOW}(?:switched|changed jobs) from (?P<origin>[^,;.!?]{{1,40}}?) to ", EMPLOYER),
    (rf"<who> {_NOW}(?:got|found|took|landed) a (?:new )?(?:job|position) (?:at|with) ", EMPLOYER),
    (rf"<who> {_NOW}changed jobs\W+(?:and )?(?:I(?:{_APOSTROPHE}m| am) )?(?:now )?at ", EMPLOYER),
    (
        rf"<who> {_NOW}(?:work|works) {_NOW}as (?!hard|much|fast|well|soon|long|little)(?:an? )?",
        JOB,
    ),
    (rf"<who> {_NOW}(?:became|got promoted to|was promoted to) (?:an? )?", JOB),
    (rf"<am> {_NOW}(?=\d{{1,3}}(?: years old| now|\W*$))", AGE),
    (rf"<am> {_NOW}an? ", BEING),
    (rf"<who> {_NOW}turned (?=\d{{1,3}}\b)", AGE),
    (r"<who> go(?:es)? by ", NAMED),
    (r"(?:from now on,? )?(?:please )?call me ", NAMED),
    (r"<who> changed (?:my|his|her) name to ", NAMED),
    (rf"<who> weighs? {_NOW}", "weight"),
    # Spanish, German, French, Italian, Portuguese, Dutch, Swedish, Polish, Russian, Chinese
    (r"(?:ahora )?(?:vivo|resido) (?:ahora )?en ", HOME),
    (r"me (?:he )?mud(?:é|e|ado) a ", HOME),
    (r"(?:ahora )?trabajo (?:ahora )?(?:en|para) ", EMPLOYER),
    (r"(?:me llamo|mi nombre es) ", NAMED),
    (r"(?:jetzt )?(?:ich )?(?:wohne|lebe) (?:ich )?(?:jetzt |nun |inzwischen )?in ", HOME),
    (r"ich bin (?:\w+ )?nach (?=.* (?:um)?gezogen)", HOME),
    (r"(?:jetzt )?(?:ich )?arbeite (?:ich )?(?:jetzt |nun )?(?:bei|für) ", EMPLOYER),
    (r"(?:ich hei(?:ß|ss)e|mein name ist) ", NAMED),
    (rf"(?:j{_APOSTROPHE}habite|je vis) (?:maintenant |désormais )?(?:à|a|en) ", HOME),
    (rf"j{_APOSTROPHE}ai déménagé (?:à|a) ", HOME),
    (r"je travaille (?:maintenant |désormais )?(?:chez|pour|à) ", EMPLOYER),
    (rf"je m{_APOSTROPHE}appelle ", NAMED),
    (r"(?:adesso |ora )?(?:abito|vivo) (?:adesso |ora )?(?:a|in) ", HOME),
    (r"mi sono trasferit[oa] (?:a|in) ", HOME),
    (r"(?:adesso |ora )?lavoro (?:adesso |ora )?(?:per|da|alla|in) ", EMPLOYER),
    (r"(?:mi chiamo|chamo-me|meu nome é) ", NAMED),
    (r"(?:agora )?(?:eu )?moro (?:agora )?em ", HOME),
    (r"(?:eu )?(?:me )?mudei(?:-me)? para ", HOME),
    (r"(?:agora )?trabalho (?:agora )?(?:na|no|em|para) ", EMPLOYER),
    (r"ik woon (?:nu )?in ", HOME),
    (r"ik werk (?:nu )?(?:bij|voor) ", EMPLOYER),
    (r"jag bor (?:nu )?i ", HOME),
    (r"(?:teraz )?mieszkam (?:teraz )?w ", HOME),
    (r"(?:я )?(?:теперь |сейчас )?живу (?:теперь |сейчас )?в ", HOME),
    (r"(?:я )?переехала? в ", HOME),
    (r"我(?:现在)?(?:住在|搬到了?)", HOME),
    (r"(?=[^\s、。]{1,12}に(?:住んで|引っ越し))", HOME),
    (r"(?:저는 |나는 )?(?=\S{1,12}에 (?:살|이사))", HOME),
)


def _with_subject(form: str) -> str:
    return form.replace("<who>", _WHO).replace("<whose>", _WHOSE).replace("<am>", _AM)


_PATTERNS: Final = tuple(
    (re.compile(_with_subject(form) + _VALUE, re.IGNORECASE), slot) for form, slot in _FORMS
)
# "I bought a flat in Madrid and moved there".
_MOVED_THERE: Final = re.compile(
    rf"(?:(?:I|we)(?:{_APOSTROPHE}ve)? )?{_NOW}"
    r"(?:bought|purchased|rented|got|found|took|leased|built|inherited|accepted)"
    r" (?:an?|the|my|our) (?:[\w-]+ ){1,4}(?:in|at|near|outside) (?:the )?"
    r"(?P<value>(?-i:[A-Z])[\w'\u2019-]*(?: (?-i:[A-Z])[\w'\u2019-]*){0,3})"
    rf",? (?:and|where) (?:(?:I|we)(?:{_APOSTROPHE}ve)? )?{_NOW}"
    r"(?:(?:moved|relocated|live|settled|moving|living) (?:over )?(?:there|in|into it)\b"
    r"|(?:where )?(?:I|we) (?:now )?live(?: now)?\W*$)",
    re.IGNORECASE,
)
# "My phone number is …", "The deadline moved to …", "Ann's favourite colour is …".
_WORD: Final = rf"[^\W\d_][\w{_APOSTROPHE[1:-1]}-]*"
_CHANGED: Final = (
    "(?:changed|moved|pushed(?: back)?|postponed|rescheduled|raised|increased|reduced|renamed|set)"
)
_OF_THING: Final = re.compile(
    rf"(?:{_WHOSE} (?P<thing>{_WORD}(?:,? {_WORD}){{0,6}}?)|(?P<bare>{_PERSON}))"
    r" (?P<is>is called|is named"
    rf"|(?:(?:(?:is|are|was|has been|has|got) )?{_CHANGED}|went (?:up|down)) {_FROM}to"
    r"|is|are|has become"
    rf"|(?:starts?|begins?|takes? place)(?= (?:(?:on|at) )?(?:{DATE}|{TIME})\b)) " + _VALUE,
    re.IGNORECASE,
)
# "Ola is our new CFO", "jo@x.org is my new email".
_IS_THING: Final = re.compile(
    r"(?P<value>\S+(?: (?-i:[A-Z])\S*){0,3}) is (?:now )?(?P<whose>my|our|the)"
    r" (?P<thing>[\w ]{1,40}?)\W*$",
    re.IGNORECASE,
)
# "I changed my number, it's …", "I changed dentists: it's …", "I have a new bank, it's …".
_HAVE: Final = rf"(?P<who>I|we)(?:{_APOSTROPHE}ve| have)? {_NOW}"
_LATELY: Final = rf"(?: (?:{RECENTLY}|last \w+|recently))?"
_REPLACED: Final = r"(?:changed|switched|replaced|updated) "
_MY_THING: Final = rf"(?P<whose>my|our|the) (?!minds?\b)(?P<thing>{_WORD}(?: {_WORD}){{0,3}}?)"
_GOT_NEW: Final = (
    rf"(?:(?:got|have|found|bought|adopted) )?an? (?P<new>new {_WORD}(?: {_WORD}){{0,2}}?)"
)
_CHANGED_THING: Final = re.compile(
    rf"{_HAVE}(?:{_REPLACED}(?:{_MY_THING}|(?P<kind>(?!minds\b){_WORD}s))|{_GOT_NEW})"
    rf"{_LATELY}[,;:\s\u2013-]+(?:and )?(?:now )?"
    rf"(?:(?:it|s?he){_APOSTROPHE}s|it is|(?:the|my) new one is) (?:now )?" + _VALUE,
    re.IGNORECASE,
)
# "I have a new dog, he's called …", "I have a new phone, an iPhone 15".
_NEW_THING: Final = re.compile(
    rf"{_HAVE}{_GOT_NEW}{_LATELY}(?:[,;:]? (?:and )?"
    rf"(?P<is>(?:(?:it|s?he|who)(?:{_APOSTROPHE}s| is) )?(?:called|named)|(?:its|his|her) name is) "
    r"|[,:] (?=(?:an?|Dr\.?|Mrs?\.?|Ms\.?) \w|(?-i:[a-z]?[A-Z])|\+?\d))" + _VALUE,
    re.IGNORECASE,
)
# "I changed my email address to …".
_CHANGED_TO: Final = re.compile(
    rf"{_HAVE}{_REPLACED}{_MY_THING} {_FROM}to " + _VALUE, re.IGNORECASE
)
# "My number changed, it's …".
_THING_CHANGED: Final = re.compile(
    rf"{_WHOSE} (?P<thing>{_WORD}(?: {_WORD}){{0,3}}?) (?:has |was |got )?changed"
    rf"(?: (?:{RECENTLY}|last \w+|recently))?[,;:\s\u2013-]+(?:and )?(?:now )?"
    rf"(?:it{_APOSTROPHE}s|it is) (?:now )?" + _VALUE,
    re.IGNORECASE,
)
_OF_ANY: Final = (
    _NEW_THING, _CHANGED_THING, _CHANGED_TO, _THING_CHANGED, _OF_THING, _IS_THING
)  # fmt: skip
_NOT_BUT: Final = re.compile(r"^not [^,;.!?]{1,60}? but (?=\S)", re.IGNORECASE)
_FRESH: Final = re.compile(r"^(?:new|current|latest|actual|absolute) ", re.IGNORECASE)
_ANOTHER: Final = re.compile(r"^(?:new|latest) ", re.IGNORECASE)
"""A new car may exist beside the old; the current one does not."""
_SAME_THING: Final = {
    "number": "phone number", "mobile number": "phone number", "cell number": "phone number",
    "mobile": "phone", "email address": "email", "e-mail": "email",
    "e-mail address": "email", "mail address": "email", "company": EMPLOYER, "work": "job",
    "full name": NAMED, "first name": NAMED, "job title": JOB, "time zone": "timezone",
}  # fmt: skip
_STARTS: Final = re.compile(r"(?:starts?|begins?)$", re.IGNORECASE)
START: Final = " start"
"""What follows in the slot of when something starts: it ends at another time."""
_IS_NAMED: Final = re.compile(r"(?:called|named|name is)$", re.IGNORECASE)
_KIND_OF: Final = {HOME: NAME, EMPLOYER: NAME, NAMED: NAME, AGE: "number", "weight": "number"}
"""The kind of a slot's values, if it is known."""
_YEARS: Final = ("number", "number years", "number years old")
"""Kinds of values that are an age: "40 pages" is none."""
_BEHIND: Final = re.compile(r"(?:に(?:住|引)|에 (?:살|이사)).*$")
"""What follows the value in Japanese and Korean."""
_OTHER_WORDS: Final = {
    HOME: ("live", "based", "moved"),
    EMPLOYER: ("work", "employer", "joined"),
    JOB: ("work", "job"),
    AGE: ("years", "age"),
    NAMED: ("name", "called"),
}
"""Other words for a slot."""
_PRONOUNS: Final = frozenset(
    "he she it they you this that who there these those what which here".split()
)
_SPEAKER: Final = re.compile(r"(?P<name>[^\s:][^:\n]{0,60}): (?=\S)")
_NO_SPEAKER: Final = re.compile(
    r"(?:(?:I|we)(?:['\u2019]ve)? \w.*|(?:[\w ,]{0,20}\b)?(?:correction|typo|update|edit|sorry"
    rf"|jobs?|news|minds?|decision|note|fyi|ps|changed))$|(?:sorry\W+)?{MISTAKE}$",
    re.IGNORECASE,
)
"""What announces something ("Sorry, I typed that wrong: …") is nobody's name."""
# After the value: what is not part of it and adds nothing; and what says more.
_SO_NOW: Final = re.compile(
    r"[\s,]+(?:now|currently|these days|nowadays|at the moment|any ?more|again|instead|actually"
    r"|recently|already|jetzt|ahora|maintenant|gezogen|umgezogen|from now on)\W*$",
    re.IGNORECASE,
)
_SINCE_WHEN: Final = re.compile(
    rf"(?<! not)[\s,]+(?:(?:since )?(?:last|this|next) \w+|(?:in|on|since) (?:(?:19|20)\d\d|{DATE})"
    rf"|(?:since |as of )?{RECENTLY}"
    r"|(?:el|la) \w+ pasad[oa]|hace \w+ \w+|letzte[nrs]? \w+|vor \w+ \w+|l[ea] \w+ derni(?:er|ère)"
    r"|il y a \w+ \w+|(?:l[oa] )?scors[oa] \w+|(?:n?o|n?a) \w+ passad[oa]|vorige \w+"
    r"|with effect from .*)\W*$",
    re.IGNORECASE,
)
_MORE: Final = re.compile(
    r"(?:,(?!\d)| (?:and|but|con|mit|avec|com|met|since|because|for|with|from|as|when|where|which"
    r"|though|after|before|while|until|near|is|are)\b)(?! \d).*$"
    r"|,? (?:not|instead of|rather than)\b.*$",
    re.IGNORECASE,
)
_GONE: Final = re.compile(
    r",? (?:and )?(?:not|instead of|rather than)\b(?P<gone>(?:[^,;.!?]|[.](?= ?\w))*)\W*",
    re.IGNORECASE,
)


_OF_WHAT: Final = re.compile(
    r"^(?P<head>\S+(?: \S+){0,2}?) (?:for|of) (?:(?:the|an?|my|our) )?(?P<what>\S+(?: \S+){0,3})$"
)


class Statement(NamedTuple):
    """Whose slot it is (``""``: the user's), which slot, and which value.

    ``says_more`` is whether something else is said with it, ``says_when`` whether it is said since
    when. ``whose`` is "our" or "the" if the slot may not be somebody's own: "the" budget is not
    mine. ``is_another`` is whether it is about the "new" or "latest" one, which may exist beside
    the old. ``origin`` is the value that it is said to have had before ("moved from Rome to Oslo"),
    ``gone`` what it is said to be instead of ("Oslo, not Rome"), if nothing else is said.
    """

    subject: str
    attribute: str
    value: Value
    says_more: bool = False
    says_when: bool = False
    whose: str = ""
    is_another: bool = False
    origin: str = ""
    gone: str | None = None

    @property
    def slot(self) -> tuple[str, str]:
        """Return what holds one value at a time: "deadline of the trip" is "trip deadline"."""
        return self.subject, _OF_WHAT.sub(r"\g<what> \g<head>", self.attribute)


def speaker_and_text(text: str) -> tuple[str, str]:
    """Return the speaker's name before a text, if there is one, and what was said.

    "Deadline: March 3" has no speaker: it is read as "The Deadline is March 3". An answer behind
    its question is read as what it states.
    """
    match = _SPEAKER.match(text)
    if match is None or _NO_SPEAKER.match(match["name"]):
        return "", as_statement(text)
    name, spoken = match["name"].strip(), as_statement(text[match.end() :])
    if len(spoken) <= _LONGEST and value_of(spoken).is_closed:
        return "", f"The {name} is {spoken}"
    return name, spoken


@lru_cache(maxsize=512)  # each fact is compared with the same memories, three times
def statement(text: str) -> Statement | None:
    """Return what a text of one sentence states plainly, ``None`` if it states no value.

    Nothing denied, hypothetical, past or wished for is a statement.
    """
    stated = stated_in(text)
    if stated is None or not stated.value.is_value or stated.attribute == BEING:
        return None
    typed = carefully_typed(text)
    return None if is_supposed(typed) or is_denied(typed) else stated


def stated_in(text: str) -> Statement | None:
    """Return the value of a slot that a text names, whatever else it says about it."""
    speaker, spoken = speaker_and_text(text)
    if len(spoken) > _LONGEST or has_quotation(spoken):
        return None
    is_cased = spoken != spoken.lower()
    spoken = said_behind_opening(carefully_typed(next(iter(sentences(spoken)), "")))
    for pattern, slot in _PATTERNS:
        if match := pattern.match(spoken):
            made = _made(match, speaker, slot, is_cased=is_cased)
            if made is not None:
                return made
    if match := _MOVED_THERE.match(spoken):
        return _made(match, speaker, HOME, is_cased=is_cased)
    for pattern in _OF_ANY:
        if match := pattern.match(spoken):
            # What "alice" is may be anything: "tired" is no name because she has no capital.
            is_named = is_cased or match.groupdict().get("bare") is not None
            return _made(match, speaker, _slot_of(match), is_cased=is_named)
    return None


_CORRECTING: Final = re.compile(
    rf"(?:[\s,.:!-]*(?:{NO}|nope|sorry|correction|typo|wrong|actually|I meant|I mean|edit|update"
    r"|and|but|also)\b[\s,.:!-]+)*",
    re.IGNORECASE,
)
_ADVERB: Final = re.compile(r"^(?:now|currently|just|finally|actually|already) ", re.IGNORECASE)
_AS_OF: Final = re.compile(
    r"^(?:(?:as of|since|from) [\w ]{1,20}?,? (?=I\b|we\b|my\b|our\b|the\b)|not [^,;.!?]{1,40}, "
    rf"|{MISTAKE}[,:] |it's |typo,? |correction:? |wrong,? |update:? |edit:? )+",
    re.IGNORECASE,
)
_DENYING_NO: Final = re.compile(rf"\b(?!{NO})no\b", re.IGNORECASE)


def said_behind_opening(spoken: str) -> str:
    """Return a sentence without its opening or the words that announce a correction.

    The "No" of "No vivo en Madrid" is not an answer, and stays.
    """
    begin = opening_end(spoken)
    denial = _DENYING_NO.search(spoken) if begin else None
    if denial is not None:
        begin = min(begin, denial.start())
    match = _CORRECTING.match(spoken, begin)
    return _AS_OF.sub("", spoken[match.end() if match else begin :].strip())


def _slot_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    kind = re.sub("ies$", "y", groups.get("kind") or "").removesuffix("s")
    named = groups.get("thing") or groups.get("bare") or groups.get("new") or kind
    thing = " ".join(named.lower().split())
    while fresh := _FRESH.match(thing):
        thing = thing[fresh.end() :]
    thing = thing.replace("favorite", "favourite").replace("color", "colour")
    thing = re.sub(rf"{_APOSTROPHE}s name$", " name", thing)
    if _IS_NAMED.search(groups.get("is") or ""):
        thing = f"{thing} name"
    if _STARTS.search(groups.get("is") or ""):
        thing = f"{thing}{START}"
    return _SAME_THING.get(thing, thing)


def _made(match: re.Match[str], speaker: str, slot: str, *, is_cased: bool) -> Statement | None:
    groups = match.groupdict()
    who = groups.get("who") or groups.get("he") or groups.get("whose") or "I"
    name = re.split(_APOSTROPHE, who)[0].lower()
    if not _PRONOUNS.isdisjoint({name, slot}):
        return None
    subject = speaker if name in ("i", "my", "we", "our", "the") else name
    written = _NOT_BUT.sub("", match["value"])
    written, says_when = _without_when(written)
    more = _MORE.search(written)
    bare, says_since = _without_when(written[: more.start()] if more else written)
    bare = _ADVERB.sub("", bare)
    bare = _BEHIND.sub("", bare).strip()
    if not bare or len(bare.split()) > 8:
        return None
    value = value_of(bare, is_cased=is_cased)
    value = _fitting(value if value.is_cased else _in_lower_case(value, slot), slot)
    if slot == "phone" and value.kind in ("address", "number"):
        slot = "phone number"
    gone = _GONE.fullmatch(more[0]) if more else None
    return Statement(
        "" if subject.lower() in ("user", "the user") else subject.lower(),
        slot,
        value,
        says_more=more is not None,
        says_when=says_when or says_since,
        whose=_whose(groups),
        is_another=_ANOTHER.match(groups.get("thing") or groups.get("new") or "") is not None,
        origin=groups.get("origin") or "",
        gone=gone and gone["gone"],
    )


def _without_when(written: str) -> tuple[str, bool]:
    """Return a value without words such as "now" or since when, and whether it had the latter."""
    says_when = False
    while True:
        shorter = _SO_NOW.sub("", written)
        dated = _SINCE_WHEN.sub("", shorter)
        says_when = says_when or dated != shorter
        if dated == written:
            return written, says_when
        written = dated


def _whose(groups: dict[str, str | None]) -> str:
    if groups.get("bare"):
        return "the"
    who = groups.get("whose") or groups.get("who") or groups.get("me") or ""
    word = re.split(rf"{_APOSTROPHE}| ", who)[0].lower()
    return {"the": "the", "our": "our", "we": "our"}.get(word, "")


def other_words_of(text: str) -> list[str]:
    """Return words with which the slots in a text may be described elsewhere."""
    stated = (stated_in(sentence) for sentence in sentences(text))
    slots = dict.fromkeys(match.attribute for match in stated if match is not None)
    return [word for slot in slots for word in _OTHER_WORDS.get(slot, (slot,))]


_QUALITY: Final = re.compile(
    r"(?:very|so|too|really|quite|pretty|always|also) |\w+(?:ive|ous|ful|able|ible|less)$"
    r"|(?:hard|easy|tough|boring|tiring|exhausting|demanding|rewarding|interesting|great|good|bad"
    r"|fun|fine|nice|awful|secure|safe|remote|busy|gone|mine|on|in|at|killing|going|getting|not)\b"
)
"""Describes what a favourite or a job is like, not which it is: "expensive"."""


_STATE: Final = re.compile(
    r"(?!(?:m\w+hamm?ed|ahmed|hamed|jared|\w+fred|mildred|sterling|fleming"
    r"|manning|irving|spring|ansible)\b)"
    rf"(?:(?:{_QUALITY.pattern})|(?:\w{{3,}}(?:ing|ed|nant)|sick|ill|angry|mad|sad|happy|dead|deaf"
    r"|blind|slow|fast|broken|down|up|late|old|young|small|big|huge|tiny|new|single|gay|vegan|left"
    r"|away|out|off|over|back|low|full|empty|noisy|flaky|strict|ready|stable|unstable|healthy|live"
    r"|dirty|clean|tidy|messy|bright|dark|shut|local|public|private|closed|open|offline|online"
    r"|cheap|better|worse|stale|idle"
    r"|sore|stiff|numb|wrong|correct|free|legacy|fresh|warm|cold|hot|wet|dry|long|short|loud|quiet)"
    # A second word that is none of these makes a name: "big query", "new relic".
    r"(?=$| (?:and|or|but|at|about|on|in|to|for|of|with|from|than|again|lately|online|enough|sick"
    r"|too|there|here|often|already|still|inside|handed|time)\b))"
)
"""What may follow "my boss is" in lower case and is no name; Mohammed is one."""
_LIVING: Final = re.compile(
    r"(?:boss|(?<!package )manager|wife|husband|partner|(?:girl|boy)?friend|brother|sister|son"
    r"|daughter|mother|father|mom|mum|dad|uncle|aunt|cousin|baby|kid|dog|cat|colleague|landlord"
    r"|neighbou?r|roommate|flatmate)$"
)
"""Who may be anything that the rules know no word for: "hyper"; what is not alive is a name."""


def _in_lower_case(value: Value, slot: str) -> Value:
    """Return a name in a text that is all lower case: surely one, perhaps one, or a state."""
    if slot in _KIND_OF or slot.startswith(("favourite ", "default ")) or slot.endswith(" name"):
        return value._replace(is_cased=True)
    # One is angry and pregnant: of two states, neither is another value.
    if _STATE.match(value.form):
        return Value(f"state {value.form}", value.form)
    return value if _LIVING.search(slot) else value._replace(is_cased=True)


def _fitting(value: Value, slot: str) -> Value:
    """Return a value of a slot; if the slot's kind is known and differs, as plain words."""
    if slot == JOB and _QUALITY.match(value.form):
        return Value(WORDS, value.form)
    if slot in (JOB, BEING):
        return Value(JOB, value.form)
    if slot == AGE and value.kind in _YEARS:
        return Value("number", value.form.partition(" ")[0])
    is_one = slot.startswith(("favourite ", "default ")) and not slot.endswith("s")
    if is_one and not value.is_value and not _QUALITY.match(value.form):
        return Value("choice", value.form)
    is_place = slot in (HOME, EMPLOYER)
    if (is_place and any(letter.isdigit() for letter in value.form)) or (
        slot in _KIND_OF and not value.kind.startswith(_KIND_OF[slot])
    ):
        return Value(WORDS, value.form)
    return value


def same_value(first: Statement, second: Statement) -> bool:
    """Return whether two statements of one slot have the same value."""
    return exact_form(first.value.form) == exact_form(second.value.form)
