"""What a user's sentence states that lasts: a preference, a rule, a decision, a cause.

Users seldom say "remember": of "Always run make lint before committing." and "We use pnpm, not
npm." nothing was kept. A sentence is judged as a whole, from its beginning, so that the same words
in a question, in an order for now ("use a for loop here") or in a pasted text are not taken. Only
what the user writes is read this way: in the output of a program "always" means nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.integrations.capture.cues import kind_of
from agent_memory.models.enums import ObservationType
from agent_memory.text import passages
from agent_memory.text.capture_words import has_capture_word
from agent_memory.text.passages import Passage
from agent_memory.text.phrases import NO_KIND, POINTING, any_of, pattern, words_of
from agent_memory.text.sentences import sentence_spans
from agent_memory.text.speech_acts import is_asking

STATED: Final = 0.75
"""The confidence of such a sentence."""
_OWN_WORDS: Final = 2_000
"""Characters. A longer text is mostly pasted: only its first and its last paragraph are read."""
_PASTED: Final = frozenset(
    "fenced|code|among code|comment|near code|log|grep|diff|listed|cell|done".split("|")
)
_MARKS_OF_PASTED: Final = (">", "|", "$ ", "```", "~~~", "<")

_LEAD: Final = (
    r"^\W*(?:(?:also|and|so|but|ok|okay|please|no|nope|yes|actually|well|hey|btw|by the way|then"
    r"|one more thing|just|in general|generally|remember|important"
    r"|(?:in|on|for) (?:this|our|the) \w+|here)\b[\s,:;.!\u2013\u2014-]+)*"
)
_THIS_ONE: Final = (
    rf"(?:(?:{POINTING}|your|how|what|option|one)\b|the (?:first|second|third|last|latter|former"
    r"|other|same|old|new|idea|way|look|result|output)\b)"
)
_ADVERB: Final = (
    "(?:(?:always|never|only|usually|normally|generally|typically|mostly|all|now|still|also"
    "|really|strongly|much|do|finally|just|currently) )*"
)
_PAST: Final = (
    r"(?:\w+ed|got|had|saw|did|went|was|were|been|came|ran|knew|seen|heard|made|thought)\b"
)
_VERB: Final = (
    rf"(?!{_PAST}|(?:get|see|have|need|mind|a|the|again|ever|\w+ing)\b"
    r"|(?!focus)\w+[^\Ws]s\b)[a-z]\w*"
)
"""Not "never mind", "never worked", "always fails", "always the same"."""
_SUBJECT: Final = (
    r"(?:you|we|I|it|everyone|(?:the|our|all|every|each|any|public|new)(?: [\w-]+){1,4}"
    r"|(?:[\w-]+ ){0,2}?[\w-]+s)"
)
_MUST: Final = r"(?:should|must|shall|has to|have to|needs? to|may|can)"
_BEFORE_WHAT: Final = (
    r"before (?:you |each |every |any )?(?:commit|push|merg|releas|deploy|open)\w*"
)
_CHANGES: Final = words_of(
    """
    use add write commit push put create import mock leave touch edit make include hardcode skip
    amend squash rebase merge change modify rename introduce install suggest explain repeat log
    abbreviate catch assume guess call mix reformat delete remove deploy
    """
)
_WE_DO: Final = words_of(
    """
    use prefer avoid follow write name store deploy host pin squash rebase target support log keep
    release require ship allow commit push merge mock
    """
)
_CHOSE: Final = (
    r"(?:chose|chosen|picked|went (?:with|for)|gone with|settled on|agreed (?:on|to|that)"
    r"|opted (?:for|to)|decided (?:on|against|that|not|to))"
)
_MOVED: Final = (
    r"(?:switched|moved|migrated|standardi[sz]ed|adopted|ditched|dropped|deprecated|replaced)"
    r"(?: over)?(?: from| to| away| off| on)?"
)
_OURS: Final = r"(?:repo|repository|project|code ?base|team|monorepo|workspace|company)"
_DOES: Final = words_of("use put keep place name write format indent store follow log prefer")
_CONVENTION: Final = r"(?:convention|house rule|rule|policy|standard|guideline)s?"
_IS_OR_DOES: Final = "(?:is|are|lives?|runs?|uses?|must|should|has|have|needs?|goes|go|expects?)"
_CAUSE: Final = words_of("cause culprit fix workaround solution")
_MINE: Final = words_of(
    """
    name time editor shell os laptop machine role job team company pronouns email username github
    favou?rite preferred native timezone manager language keyboard
    """
)
_ARE: Final = r"(?:was|were|is|are|got|been)(?: \w+ly)?"
_HAVE: Final = r"(?:'ve| have| had|'d)?"

# Each is matched at the beginning of a sentence, after "please", "no," and the like.
_FORMS: Final = {
    ObservationType.NOTE: r"""
    (?:note that|keep in mind|bear in mind|be aware|for the record|heads.up|fyi)\b
    (?:for future reference|just so you know|don't forget that)\b
    """,
    ObservationType.PREFERENCE: rf"""
    I(?:'d| would) {_ADVERB}(?:prefer|rather) (?!{_THIS_ONE})\w
    I {_ADVERB}(?:prefer|like|love|hate|dislike) (?!{_THIS_ONE})\w
    I (?:(?:don't|do not) like|(?:can't|cannot) stand) (?!{_THIS_ONE})\w
    I (?:always|never|don't|do not)(?: ever)? want (?!to|{_THIS_ONE})\w
    (?:I(?:'d like| want| need) you to|you (?:should|must|can|may)) (?:always|never)\b
    prefer (?!the|this|that|it)\w
    (?:answer|respond|reply|talk|speak)(?: to)?(?: me)? in (?-i:[A-Z])\w
    call me (?-i:[A-Z])\w
    keep (?:your )?(?:answers|replies|responses|explanations|commits|commit messages|PRs) \w
    my {_MINE}\b[\w -]{{0,30}} (?:is|are)\b
    I {_ADVERB}(?:use|work (?:with|at|for|in|as|from)) (?!{_THIS_ONE}|an?\b|the\b)\w
    """,
    ObservationType.PATTERN: rf"""
    (?:always|never) {_VERB}
    {_SUBJECT} {_MUST} (?:always|never)\b
    (?:we|I) (?:always|never|only|usually|normally|generally|typically) {_VERB}
    [^.!?]*\b(?:from now on|going forward|as a (?:general )?rule|by convention)\b
    in (?:the )?future,? (?!(?:we|it|this|that) (?:may|might|could|will)\b)\w
    (?:don't|do not) (?:ever )?{_CHANGES}\b[^.!?]*\b(?:instead|unless|without|ever|before)\b
    (?:(?:don't|do not) {_CHANGES}|avoid|stop \w+ing) (?!{NO_KIND}\b|(?:any|every)thing\b)\S
    (?:don't|do not) (?:touch|edit|modify|push|commit|deploy)\b(?! (?:any|every)thing|\W*$)
    use (?!{NO_KIND}\b)[^.;!?]{{1,60}}?,? (?:not|instead of|rather than|over) (?!{NO_KIND}\b)\w
    (?!.*\b(?:that|which)\b){_DOES}\b[^.!?]*\b(?:always|everywhere|by default)\b
    {_DOES}\b[^.!?]*\b(?:in|for|across) (?:this|our|the whole|the entire) {_OURS}\b
    (?:use|keep|name|follow)\b[^.!?]*\b(?:in|for) (?:all|every|any|each)\b
    (?:run|format|lint|test|update|bump|rebase|squash|ask)\b[^,;]{{2,80}}?\b{_BEFORE_WHAT}
    ask (?:me )?(?:first )?before\b
    (?:make sure|ensure|be sure)\b[^.!?]*\b(?:always|never|every time|whenever)\b
    (?:whenever|every time|each time) you\b
    (?:all|every|each|any) [\w -]{{2,40}}? (?:{_MUST}|needs?|lives? in|go(?:es)? in) (?!pass)\w
    (?:in|for) (?:this|our) {_OURS},? (?:all|every|each|{_DOES}) (?!\w+ing\b|{_THIS_ONE})\w
    we(?:'re| are) (?:on|using|running) (?!{_THIS_ONE}|an?\b|the\b|out\b|into\b)\w
    we {_ADVERB}(?:(?:don't|do not) )?{_WE_DO} (?!{_THIS_ONE}|to\b|an?\b|\w+ing\b)\w
    (?:the|our|a) (?:[\w-]+ ){{0,3}}?{_CONVENTION} (?:here |in [\w ]{{1,30}} )?(?:is|are)\b
    our [\w -]{{1,40}}? {_IS_OR_DOES} (?!\w+ing(?:\s|$)|broken|down|red|slow|wrong|not working)\w
    """,
    ObservationType.DECISION: rf"""
    (?:we|I|the team){_HAVE} {_ADVERB}{_CHOSE} (?!{_THIS_ONE})\w
    (?:we|the team){_HAVE} {_ADVERB}{_MOVED} (?!{_THIS_ONE})\w
    let's (?:go with|stick with|stick to|settle on|agree on) (?!{_THIS_ONE}|the\b|plan\b)\w
    """,
    ObservationType.BUGFIX: rf"""
    [^,;]{{1,100}}\b{_ARE} (?:caused by|due to (?!be\b)|because of|(?:fixed|solved|resolved) by)
    (?:the )?(?:root |actual |real )?{_CAUSE}\b[^,;]{{0,60}} (?:was|is|turned out)\b
    the (?:problem|issue|bug|reason|failure)\b[^,;]{{0,60}} (?:was|turned out)\b(?! not\b)
    (?:I|we) (?:fixed|solved|resolved) \w[^,;]{{0,60}}\bby \w+ing
    """,
    ObservationType.DISCOVERY: rf"""
    (?:it )?turn(?:s|ed) out\b
    (?:I|we){_HAVE} (?:found|figured) out (?:that|why|how)\b
    """,
}
_PATTERNS: Final = {kind: pattern(_LEAD + any_of(forms)) for kind, forms in _FORMS.items()}
_ONLY_NOW: Final = frozenset({ObservationType.PREFERENCE, ObservationType.PATTERN})
"""Types that a sentence is not of if it is about this time only."""
_SUPPOSED: Final = pattern(
    r"^\W*(?:if|maybe|perhaps|suppose|I (?:think|guess|wonder|suspect))\b"
    r"|\b(?:check|see|find out|know|tell me|test) (?:if|whether)\b"
)
_FOR_NOW: Final = pattern(
    r"\b(?:yet|for now|right now|this time|at the moment|for the moment|today)\b"
    rf"|\b(?:{words_of('it this that these those them again now')})\W*$"
)
_HERE: Final = pattern(rf"^\W*(?:no\W+|please )*(?:{_DOES}|don't|do not|avoid)\b.*\bhere\b")


def statements(text: str) -> Iterator[tuple[Passage, ObservationType]]:
    """Yield each sentence of a user's own words that states something lasting, and its type."""
    for low, high in _own_words(text):
        for start, end in sentence_spans(text[low:high]):
            sentence = text[low + start : low + end]
            begin = low + start + len(sentence) - len(sentence.lstrip())
            if not has_capture_word(sentence, is_users=True) or _is_pasted(text, begin):
                continue
            fenced = text.count("```", 0, begin) % 2 == 1
            passage = passages.passage(text, begin, begin + 1, fenced=fenced)
            kind = kind_of_statement(passage.sentence)
            if kind is not None and not passage.shapes & _PASTED:
                yield passage, kind


def kind_of_statement(sentence: str) -> ObservationType | None:
    """Return what a sentence states that lasts; ``None`` if it asks, orders or supposes."""
    if is_asking(sentence) or _SUPPOSED.match(sentence) or _HERE.match(sentence):
        return None
    kind = next((kind for kind, form in _PATTERNS.items() if form.match(sentence)), None)
    if kind in _ONLY_NOW and _FOR_NOW.search(sentence):
        return None
    return kind_of(sentence) if kind is ObservationType.NOTE else kind


def _own_words(text: str) -> list[tuple[int, int]]:
    """Return the spans of a prompt that its user probably typed."""
    if len(text) <= _OWN_WORDS:
        return [(0, len(text))]
    first, last = text.find("\n\n", 0, _OWN_WORDS), text.rfind("\n\n", len(text) - _OWN_WORDS)
    own = [(0, first)] if first >= 0 else []
    return [*own, (last, len(text))] if last >= 0 and last != first else own


def _is_pasted(text: str, begin: int) -> bool:
    line = text.rfind("\n", 0, begin) + 1
    return text[line : line + 20].lstrip().startswith(_MARKS_OF_PASTED)
