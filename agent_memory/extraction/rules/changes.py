"""Signs in a text that something else no longer holds: corrections, denials, changes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agent_memory.extraction.rules.values import DATE
from agent_memory.text.stems import stems

_FLAGS: Final = re.IGNORECASE


def _any(phrases: str) -> str:
    """Return a pattern for any of some phrases, several per line, two spaces between them."""
    return "(?:" + "|".join(part for part in re.split(r"\s{2,}|\n", phrases) if part) + ")"


_SEASON: Final = "(?:summer|winter|spring|autumn|evenings?|mornings?|holidays)"
RECENTLY: Final = (
    r"(?:today|yesterday|(?:over|at|on) the weekend"
    rf"|this (?:week|weekend|month|year|morning|afternoon|evening|{_SEASON})"
    r"|(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|some|several|a few"
    r"|a couple of) (?:hour|day|week|month)s? ago)"
)
"""When something changed, so that what it changed to holds now."""
_YEAR: Final = r"(?:19|20)\d\d"
_TITLES: Final = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St")
_NO_TITLE: Final = "".join(rf"(?<!\b{title}\.)" for title in _TITLES)
_TITLE: Final = "|".join(rf"(?<=\b{title})\.(?= \w)" for title in _TITLES)
# A dot may be part of the phrase: "not 9:30", "not ann@home.example", "not Dr. Lee".
_END: Final = (
    rf"(?=[,;!?)]|[:.]{_NO_TITLE}(?!\w)|\s[-\u2013\u2014]\s"
    r"|\s(?:and|but|because|since|so|for|to|now|any ?more)\b|$)"
)
_WHAT_WITHIN: Final = rf"(?P<what>(?:[^,;:.!?]|[:.](?=\w)|{_TITLE}){{1,60}}?)"
_WHAT: Final = _WHAT_WITHIN + _END
_UP_TO_WHEN: Final = (
    r"(?P<what>[^,;:.!?]{1,60}?)"
    r"(?=[,;:.!?]| (?:with|by|for|and|because|since|to|last|in|on|at|this|yesterday)\b|$)"
)
_ITS: Final = r"(?:my |our |the |an? )?"
_OPENING: Final = r"^\W*(?:(?:well|oh|lol|haha|hey|hm+|ah|ok|okay|and|but|so)[\s,.!]+)*"
NO: Final = (
    r"no(?:\b(?=\s*[,.;:!\u2013\u2014-]|$)"
    r"|(?= (?:it|that|the|i|my|we|our|not|wait|sorry)\b))"
)
""""No" as an answer: "No sugar for me" and Spanish "No fumo" correct nothing."""
MISTAKE: Final = (
    r"(?:(?:I|we) (?:just )?(?:got|had|typed|said|wrote|put|spelled|entered|remembered)"
    r" (?:it|that|this) wrong(?:ly)?"
    r"|(?:I|we) mis(?:typed|spoke|spelled|stated|wrote|remembered|read|heard)(?: (?:it|that|this))?"
    r"|(?:that|it|this) was (?:wrong|an? (?:typo|mistake|error))|my (?:mistake|bad))"
)
"""How somebody says that what they said was wrong: "I typed that wrong: my birthday is May 5"."""
_CORRECTS: Final = re.compile(
    rf"{_OPENING}(?:{NO}|not [^,;:.!?]{{1,30}},|(?:sorry\W+)?{MISTAKE}:"
    r"|sorry\b[^.!?]{0,15}\b(?:meant|mean|typo|it's|it is)\b|"
    + _any(
        r"""
        nope  correction\b  typo\b  wrong\b  actually\b  sorry,  i meant\b  i mean\b
        make (?:that|it)\b  scratch that\b  edit:  update:  korrektur\b  corrección\b
        non,  nein,  en realidad\b  en fait\b  eigentlich\b
        """
    )
    + r")|\b(?:actually|to be precise|i misspoke|my mistake|i was wrong|after all)\b"
    r"|\bchanged (?:my|our|his|her|their) minds?\b",
    _FLAGS,
)
_CHANGED_MIND: Final = re.compile(r"\bchanged (?:my|our) minds?\b", _FLAGS)
_NEW: Final = re.compile(
    r"(?<![/.])\b"  # nothing is new in "db/new.sql"
    + _any(
        r"""
        now(?! and then)  nowadays  these days  currently  at the moment  as of  new  from now on
        any ?more  no longer  since (?:last|this|yesterday)  moved  relocated  switched  changed
        replaced  migrated  instead  became  got promoted  was promoted  turned  joined  started
        again  latest  current  went up  went down  pushed  postponed  rescheduled  raised
        increased  decreased  renamed
        ahora  ya no  jetzt  nun  inzwischen  nicht mehr  maintenant  désormais  ne \w+ plus
        adesso  ora  non \w+ più  agora  não \w+ mais  nu  niet meer  teraz  już nie  теперь
        сейчас  больше не
        """
    )
    + r"\b(?!/|\.\w)|现在|改|今は|지금|이제",
    _FLAGS,
)
_STOPPED: Final = _any(
    r"""
    replaced  swapped  dropped  ditched  dumped  abandoned  sold  lost  retired from  gave away
    got rid of  gone off  given up on  gave up on  gave up  given up  dropped out of  broke up with
    split (?:up )?(?:with|from)  divorced
    """
)
_LEFT: Final = _any(
    r"left  quit  leaving  resigned from  fired from  laid off from  moved (?:out of|away from)"
)
_WHEN: Final = "(?:in|on|last|this|yesterday|after|before)\\b"
_SWITCHED: Final = "(?:switch|mov|chang|migrat|relocat|transfer|upgrad|renam|convert|went|go)"
_OVER: Final = _any(
    r"cancel(?:led|ed)  called off  scrapped  gone  dead  over  discontinued  deprecated"
    r"  closed"
)
_PLANNED: Final = _any(
    r"""
    breakfast  brunch  lunch  dinner  party  wedding  picnic  barbecue  date  meeting  call  demo
    interview  appointment  session  talk  lecture  class  game  match  concert  show  launch  trip
    visit  tour  flight  holiday  vacation  deal
    """
)
"""What is off if it is not to be; a lamp that is off is another's."""
_IS_OFF: Final = r"(?:is|are)(?: now)? off(?: again| now)?(?=[,;:.!?]|$)"
# "Is closed on Sundays" is not an end, "was closed on Friday" is one.
_IS_NOW: Final = (
    r"(?!(?:is|are) closed (?:on|at|from|during)\b)(?:is|was|ha[sv]e? been|got|are|were)"
)
_DIED: Final = "(?:died|passed away|ended|closed down)"
_CORRECTED: Final = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"(?:^|[,;] )(?:and |but )?not (?!only|just|sure|yet|really|very|even){_WHAT}",
        r"\bnot (?P<what>[^,;:.!?]{1,40}?) but\b",
        rf"\b(?:instead of|rather than) {_WHAT}",
        r"\b(?:ya no|nicht mehr|ne|non|não|niet|больше не) (?P<what>[^,;:.!?]{1,60})",
    )
)
_ENDED: Final = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"\b{_STOPPED} {_ITS}{_UP_TO_WHEN}",
        rf"\b{_LEFT} (?:my job (?:at|with) |my position at )?{_ITS}{_WHAT}",
        rf"\b{_LEFT} (?P<what>(?-i:[A-Z])[\w'&-]*(?: (?-i:[A-Z])[\w'&-]*){{0,3}}) {_WHEN}",
        rf"\b(?:stopped|quit|ceased) (?!(?:for|by|at|in|to) )(?:being (?:an? )?)?{_WHAT}",
        rf"\b{_SWITCHED}\w* (?:\w+ ){{0,4}}?from {_WHAT_WITHIN} (?:over )?to \S",
        rf"\b(?:cancell?ed|had to cancel|called off|scrapped) {_ITS}(?P<what>[^,;:.!?]{{1,60}})",
        r"\b(?:isn't|aren't|wasn't|ain't) (?P<what>[^,;:.!?]{1,40}?) any ?more\b",
        rf"^\W*{_ITS}(?P<what>[^,;:.!?]{{1,60}}?) {_IS_NOW} {_OVER}\b",
        rf"^\W*{_ITS}(?P<what>(?:[\w'-]+ ){{0,3}}?{_PLANNED}\b[^,;:.!?]{{0,40}}?) {_IS_OFF}",
        rf"^\W*{_ITS}(?P<what>[^,;:.!?]{{1,60}}? (?:is|are) closed (?:on|at|from) \S[^,;:.!?]*)",
        rf"^\W*(?:my |our |the |(?-i:(?=[A-Z])))(?P<what>[^,;:.!?]{{1,40}}?) {_DIED}\b",
    )
)
_WHEN_ENDED: Final = re.compile(
    rf"(?:^| )(?:(?:since |as of )?(?:{RECENTLY}|\w+ years? ago|last \w+|recently)"
    rf"|(?:in|since) (?:{_YEAR}|{DATE}))$",
    _FLAGS,
)
"""When something ended is not what did: "I quit smoking in January"."""
_NOT_DONE_BEFORE: Final = re.compile(
    r"(?:(?:n['\u2019]t|\b(?:not|never|without|almost|nearly))"
    r"(?: (?:ever|really|yet|going to|gonna|managed? to))?"
    r"|\b(?:try|tries|tried|trying|attempt(?:s|ed|ing)?|fail(?:s|ed|ing)?|struggl(?:es?|ed|ing)"
    r"|want(?:s|ed)?|wish(?:es|ed)?|hop(?:es?|ed|ing)|plan(?:s|ned|ning)?|intend(?:s|ed)?"
    r"|like|love|need|have|ought|going|about) to"
    r"|\b(?:thinking|thought|dream(?:ing|t|ed)) (?:of|about)|\bconsider(?:s|ed|ing)?"
    r"|(?:\b(?:will|would|should|could|might|may|must|can)|['\u2019](?:ll|d))"
    r"(?: (?:also|soon|never|\w+ly))?(?: have)?) $",
    _FLAGS,
)
"""What precedes "give up" if nothing was given up: it is denied, tried, wished for or planned."""
_NO_LONGER: Final = re.compile(
    r"\b(?:no longer|any ?more|not any longer|ya no|nicht mehr)\b", _FLAGS
)
_NEGATED: Final = re.compile(
    rf"^\W*(?!{NO})no\b|"  # "No dogs are allowed", "No fumo"; "No, dogs are allowed" is an answer
    r"\b(?:not|never|no longer|cannot|can't stand|can not|stop|avoid|hates?|dislikes?|detest"
    r"|decided against"
    r"|neither|(?:ha(?:ve|s|d)|there (?:is|are)|there['\u2019]s|yo) no(?= \w))\b|n['\u2019]t\b"
    r"|\b(?:nicht|kein(?:e[mnrs]?)?|nie|niemals|ne|n['\u2019](?=\w)|pas|jamais|nunca|jamás|tampoco"
    r"|não|niet|geen|nooit|inte|ikke|aldrig|aldri|ingen|не|никогда)\b",
    _FLAGS,
)
PAST: Final = re.compile(
    # "Agreed" and "freed" are past, "need" is not.
    r"\b(?:(?!(?:\w*[fns]eed|s?weed|breed|speed|bleed|greed|creed|exceed|proceed|succeed)\b)\w{2,}ed"
    r"|was|were|had|went|broke|bought|got|saw|met|did|came|took|made|ate|gave|lost|won|found"
    r"|said|told|read|wrote|drank|fell|flew|drove|sold|built|ran|began|left|paid|taught|grew|spent"
    r"|swam|sang|rode|slept|lent|caught)\b",
    _FLAGS,
)
_WHO: Final = (
    r"(?:I|we|he|she|they|(?:my|our|the) [\w'\u2019-]+(?: [\w'\u2019-]+)?"
    r"|(?!(?:I|we|he|she|they|my|our|the)\b)[\w-]+)"
)
_ONLY_THEN: Final = _any(
    r"""
    paid  cost  spent  built  wrote  painted  drew  met  visited  toured  attended  travelled
    traveled  studied  graduated  lived  worked  interned  served  slept  ate  drank  smoked
    cooked  baked  drove  flew  walked  hiked  swam  sang  danced  rode  raced  played  saw  watched
    heard  spoke  talked  asked  told  said  thanked  helped  fell  died  broke  crashed  repaired
    fixed  cleaned  washed  celebrated  gave  used  sold  lost  ended  stopped  quit  grew up
    born  raised  presented  missed  finished  passed  argued  interviewed  enjoyed  stayed
    photographed  reviewed  researched  waited  scored  forgot
    left (?!my|our|the|an?)
    ran (?:(?:an?|the|my|\d+) )?(?:[\w-]+ ){0,2}(?:race|marathon|\d+ ?k|km|miles?)
    had (?:an?|the|my|our|\d+|breakfast|brunch|lunch|dinner|supper|coffee|tea|drinks)
    did (?:an?|my)  went (?:to|by|through|home)
    """
)
"""What lasts in nothing: all else may have begun something, as "landed a job" did, and is asked."""
_HAPPENED: Final = re.compile(
    r"(?!.*(?:[,;]| (?:and|but|which|that)\b))(?:(?:in|on|last|yesterday)(?: \w+){0,2},? )?"
    rf"{_WHO}(?: (?:just|also|once|first|\w+ly))? (?:(?:(?:was|were) )?{_ONLY_THEN}\b"
    r"|(?:was|were) (?!\w+ed\b|given\b|taken\b|put\b))",
    _FLAGS,
)
"""What happened, and began nothing that lasts: "I built the shed", but not "I bought a bike"."""
_DID: Final = re.compile(
    r"\b(?:(?i:I|we|you|s?he|they|who|and)|[A-Z][\w-]+)"
    r"(?: (?:also|just|then|both|all|\w+ly))? (?:(?P<verb>(?:was |were )\w{2,}ing|\w{2,}ed))\b"
)
"""Somebody, and what they did: in "I have always loved" and "a used car" nobody does anything."""
_HABIT: Final = re.compile(
    r"\b(?:every|each|always|usually|often|daily|weekly"
    r"|(?:\w+day|morning|afternoon|evening|night|weekend)s)\b",
    _FLAGS,
)
_ONCE: Final = re.compile(
    r"\b(?:this|next|last)\b|\b(?:did|could|was|were)(?:n['\u2019]?t| not)\b"
    r"|\b(?:can['\u2019]?t|cannot|won['\u2019]?t)\b[^.!?]{0,60} on \w+day\b",
    _FLAGS,
)
_WHILE: Final = _any(
    r"(?:\w+ )?(?:conference|visit|trip|holiday|summer|while)  (?:\w+ )?(?:week|month|day|night)s?"
)
_BESIDE: Final = re.compile(
    r"\b"
    + _any(
        rf"""
        also  too  as well  another  second  other  additionally  besides  sometimes  occasionally
        often  part-?time  temporarily  for now  for the time being  one of  today  tonight
        tomorrow  yesterday  at night  weekends?  during  when I was  came back  come back
        returned  went back  moved back  ago  until  till  back then  formerly  previously
        originally  at first  as a (?:student|child|kid|teenager)
        this (?:week|weekend|month|morning|afternoon|evening|time|{_SEASON})  in the {_SEASON}
        for (?:an?|the|one|two|three|a few|some) {_WHILE}
        (?:in|from|since|between|back in) (?:19|20)\d\d
        también  además  hoy  esta semana  auch  heute  diese woche  aussi  aujourd'hui
        cette semaine  anche  oggi  também  hoje  ook  vandaag
        """
    )
    + r"\b|也|今天|も",
    _FLAGS,
)
_FOR_A_WHILE: Final = _any(
    r"""
    for (?:an?|the|this|that|these|some|one|two|three|\d+)(?! (?:new )?(?:job|better)\b)
    temporarily  until  till
    """
)
_CHANGED_THEN: Final = re.compile(
    rf"\b(?:(?:since|as of|starting|effective) (?:{RECENTLY}|{_YEAR})"
    r"|turned \d{1,3} "
    + RECENTLY
    + r"|(?:moved|relocated|joined(?! [^.!?;]{1,40} for )|started|became|switched|changed"
    r"|converted|migrated|renamed|promoted|(?:got|bought|found|adopted) an? new)\b"
    rf"(?:(?! {_FOR_A_WHILE}\b)[^.!?;]){{1,60}}? {RECENTLY})\b",
    _FLAGS,
)
"""When something changed: "I moved to Bergen yesterday", not "I work from home today".

"In 2010" may be long over, as nothing here says which year it is.
"""
_UNREAL: Final = re.compile(
    r"\b"
    + _any(
        r"""
        if  unless  would  could  might  (?-i:may)(?! \d)  perhaps  suppose  imagine  wish  hopes?
        hypothetically  used to  want(?:s|ed)? to  plan(?:s|ning)? to  going to  gonna  will  won't
        never  almost  nearly  dreamt?  dreamed  didn't  did not  said  says  told  wrote  wonder
        wenn  würde  thinking (?:of|about)  consider(?:ing)?
        """
    )
    + r"\b|['\u2019](?:ll|d)\b|[\"\u201c\u201d\u00ab]|\s['\u2018]\w",
    _FLAGS,
)

_GUESSED: Final = re.compile(
    r"\b"
    + _any(
        r"""
        i (?:think|guess|believe|assume|suppose|heard|hear)  maybe  probably  apparently  presumably
        supposedly  allegedly  seems?  not sure  glaube  denke  vielleicht  wahrscheinlich  wohl
        je crois  je pense  peut-être  creo  quizás?  tal vez  credo  penso  forse  acho  talvez
        """
    )
    + r"\b",
    _FLAGS,
)


class Change(NamedTuple):
    """What a text says about change.

    ``corrects``: it says that something said before was wrong. ``is_new``: that something is so
    now. ``denied``: the stems of each thing that it says is no more, ``ended``: of those that were
    so before, as in "I sold the bike". ``is_beside``: it holds for a while, or beside others, or
    so it seems and (``is_changed``) that is when it changed; ``is_unreal``: it is hypothetical,
    planned, reported; ``is_guessed``: the speaker is not sure of it.
    """

    corrects: bool
    is_new: bool
    denied: tuple[frozenset[str], ...]
    ended: tuple[frozenset[str], ...]
    is_negated: bool
    is_beside: bool
    is_changed: bool
    is_unreal: bool
    changes_mind: bool
    is_guessed: bool

    @property
    def is_for_a_while(self) -> bool:
        """Return whether it holds beside others, or not for good: "I work from home today"."""
        return self.is_beside and not self.is_changed


def says_that_it_ended(text: str) -> bool:
    """Return whether a text says outright that something no longer holds."""
    return _NO_LONGER.search(text) is not None


def is_beside(text: str) -> bool:
    """Return whether what a text says holds only for a while, or beside others."""
    return _BESIDE.search(text) is not None


def is_changed(text: str) -> bool:
    """Return whether what a text says holds beside others only as it says when that began."""
    rest = _CHANGED_THEN.sub(" ", text)
    return rest != text and is_beside(text) and not is_beside(rest)


def is_what_happened(text: str) -> bool:
    """Return whether a text says what happened, which is true whatever ends later."""
    return _HAPPENED.match(text) is not None


def told_by_verb(text: str) -> frozenset[str]:
    """Return the stems that a text has only in verbs that tell what was done: "we talked"."""
    verbs = [match["verb"] for match in _DID.finditer(text)]
    return stems(" ".join(verbs)) - stems(_DID.sub(" ", text)) if verbs else frozenset()


def is_but_once(text: str, habit: str) -> bool:
    """Return whether a text denies a habit for one occasion: "I can't run this Monday"."""
    return _HABIT.search(habit) is not None and _ONCE.search(text) is not None


def _things(patterns: tuple[re.Pattern[str], ...], text: str) -> tuple[frozenset[str], ...]:
    """Return the stems of each thing that a text says is no more."""
    things = (
        stems(_WHEN_ENDED.sub("", match["what"]))
        for pattern in patterns
        for match in pattern.finditer(text)
        if _NOT_DONE_BEFORE.search(text, max(0, match.start() - 30), match.start()) is None
    )
    return tuple(words for words in things if words)


def change_of(text: str) -> Change:
    """Return what a text says about change."""
    ended = _things(_ENDED, text)
    return Change(
        corrects=_CORRECTS.search(text) is not None,
        is_new=_NEW.search(text) is not None,
        denied=_things(_CORRECTED, text) + ended,
        ended=ended,
        is_negated=_NEGATED.search(text) is not None,
        is_beside=is_beside(text),
        is_changed=is_changed(text),
        is_unreal=_UNREAL.search(text) is not None,
        changes_mind=_CHANGED_MIND.search(text) is not None,
        is_guessed=_GUESSED.search(text) is not None,
    )
