"""What a sentence is about, and how likely it is worth keeping, judged by the words around a cue.

A cue is what a capture pattern matched ("remember", "decided to"). The same word may give an order
("remember that …"), name a check box ("Remember me") or be denied ("not important"). Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agent_memory.models.enums import ObservationType
from agent_memory.text.passages import Passage
from agent_memory.text.speech_acts import LEAD, is_asking, is_instruction, without_request

UNKNOWN_CUE: Final = 0.6
"""The confidence of a sentence that only a user's own pattern matched."""

_FLAGS: Final = re.IGNORECASE
_WE: Final = (
    r"(?:\b(?:I|we|they|you)(?:['’]ve| have| had)?"  # noqa: RUF001
    r"|\b(?:team|group|leads?|user|crew|client)(?: has| have)?)"
    r"\s+(?:\w+ly\s+|then\s+|also\s+|now\s+)?$"
)
_START: Final = (
    r"^(?:\W*(?:also|and|so|but|ok|please|finally|then|by the way|one more thing|\w{2,12}:)"
    r"[\s,:]+)*\W*$"
)
_ASKED: Final = r"\b(?:can|could|will|would) you (?:please |also )?$"


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to use a cue: what precedes and follows it, and the confidence that this gives."""

    cue: re.Pattern[str]
    sure: float
    before: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None


def _form(cue: str, sure: float, *, before: str = "", after: str = "", case: int = _FLAGS) -> _Form:
    return _Form(
        re.compile(cue, case),
        sure,
        re.compile(before, _FLAGS) if before else None,
        re.compile(after, _FLAGS) if after else None,
    )


# The first match counts.
_FORMS: Final = (
    _form(r"TODO:\s*|FIXME:\s*", 0.8, case=0),
    _form(r"(?:todo|fixme):\s*", 0.6),
    _form(r"NOTE:\s*", 0.8, case=0),
    _form(r"Note:\s*", 0.45, case=0, before=_START),
    _form(r"note:\s*", 0.4),
    _form(
        r"preference:",
        0.1,
        after=r"\s*(?:[\d.]+|true|false|yes|no|null|none|\S{0,3})\b\W*"
        r"(?:$|\w+\W*$)",
    ),
    _form(r"preference:", 0.8),
    _form(r"remember", 0.1, after=r"[\s-](?:me\b(?! that)|my password)|['’]|[.,]?\s*$"),  # noqa: RUF001
    _form(r"remember", 0.85, before=_START, after=r"\s+(?:that|this:|to)\b|:"),
    _form(r"remember", 0.85, before=_ASKED, after=r"\s+(?:that|this:|to)\b|:"),
    _form(r"remember", 0.85, before=r"\bplease\s+$", after=r"\s+(?:that|this:|to)\b|:"),
    _form(
        r"remember",
        0.7,
        before=r"\b(?:must|should|need to|have to|worth|important to)\s+$",
        after=r"\s+(?:that|to)\b|:",
    ),
    _form(r"remember", 0.45, before=_START, after=r",?\s+\w"),
    _form(r"remember", 0.2),
    _form(r"important", 0.1, after=r"\s+to (?:us|me|you|everyone|them)\b"),
    _form(r"important", 0.85, before=_START, after=r":"),
    _form(r"important", 0.7, before=r"(?<!\bas )$", after=r":\s"),
    _form(
        r"important",
        0.45,
        before=r"\b(?:is|it['’]s)\s+(?:\w+\s+)?$",  # noqa: RUF001
        after=r"\s+(?:to|that you) (?:understand|note|know|consider|keep|check|think)\b",
    ),
    _form(
        r"important",
        0.65,
        before=r"\b(?:is|was|it['’]s)\s+(?:\w+\s+)?$",  # noqa: RUF001
        after=r"\s+that\b",
    ),
    _form(
        r"important",
        0.55,
        before=r"\b(?:is|it['’]s)\s+(?:\w+\s+)?$",  # noqa: RUF001
        after=r"\s+to\b",
    ),
    _form(
        r"important",
        0.65,
        before=r"\bmost\s+$",
        after=r"\s+(?:\w+\s+)?(?:thing|lesson|finding|point|part|insight|rule|fact|takeaway)"
        r"(?:\s+(?:here|so far|for us))?\s*(?::|is that\b|was that\b)",
    ),
    _form(r"important", 0.3),
    _form(r"decided to", 0.85, before=_WE),
    _form(r"decided to", 0.75, before=_START),
    _form(r"decided to", 0.65, before=r"\b(?:was|been)\s+$"),
    _form(r"decided to", 0.55, before=r"(?:^|[\s:])(?-i:[A-Z]\w+|everyone|everybody)\s+$"),
    _form(r"decided to", 0.4),
    _form(r"learned that", 0.85, before=_WE),
    _form(r"learned that", 0.8, before=_START),
    _form(r"learned that", 0.45),
    _form(r"discovered", 0.1, after=r":?\s+\d|\s*(?:\(|$|[:,=])|\s+(?:in|by|on)\s"),
    _form(r"discovered", 0.85, before=_WE, after=r"\s+(?:that|why|how)\b"),
    _form(r"discovered", 0.8, before=_START, after=r"\s+(?:that|why|how)\b"),
    _form(r"discovered", 0.7, before=_WE),
    _form(r"discovered", 0.35),
    _form(
        r"solved by",
        0.35,
        before=r"\b(?:can|could|may|might|would|perhaps|should|to|must)\b[\w\s]{0,20}$",
    ),
    _form(r"solved by", 0.8),
)
_WORDS: Final = re.compile(
    r"remember|important|decided to|learned that|discovered|solved by|preference:"
    r"|(?:todo|fixme|note):",
    _FLAGS,
)

_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nobody|nothing|without|hardly|cannot|less|\w+n['’]t|un)"  # noqa: RUF001
    r"(?:\s+(?:\w+\s+){0,2}|\s*)$",
    _FLAGS,
)
_SUPPOSED: Final = re.compile(
    r"^\W*(?:if|should|when|whenever|unless|suppose|imagine|had|whether)\b|\b(?:if|unless|would|"
    r"could|might|may|perhaps|maybe)\s+(?:\w+\s+){0,3}$",
    _FLAGS,
)
_TYPES: Final = tuple(
    (kind, re.compile(pattern, _FLAGS))
    for kind, pattern in (
        (ObservationType.TASK, r"^\W*(?:todo|fixme):|\b(?:todo|fixme):|\bremember to\b"),
        (
            ObservationType.PREFERENCE,
            (
                r"\bprefer(?:s|red|ences?)?\b|\bfavou?rites?\b|\brather (?:have|use)\b"
                r"|\b(?:I|he|she|user)\s+(?:really\s+)?(?:likes?|loves?|hates?|dislikes?|wants?)\b"
            ),
        ),
        (ObservationType.DECISION, r"\bdecided\b|\bwe (?:chose|agreed|settled)\b|\bdecision\b"),
        (ObservationType.BUGFIX, r"\b(?:solved|fixed) by\b|\bworkaround\b|\broot cause\b"),
        (
            ObservationType.DISCOVERY,
            r"\bdiscovered\b|\blearned that\b|\bfound (?:out )?that\b|\bturn(?:s|ed) out\b",
        ),
        (ObservationType.QUESTION, r"\bopen question\b|\bunclear (?:whether|how|why)\b"),
        (
            ObservationType.INSIGHT,
            r"\b(?:lesson|insight|finding|takeaway)\b|\breali[sz]ed?\b|\bwhich means\b",
        ),
        (
            ObservationType.PATTERN,
            r"\b(?:always|never)\s+(?!\w+ed\b)\w+|\bconvention\b|\bnaming\b",
        ),
    )
)
_TAG: Final = re.compile(
    LEAD + r"(?:remember\s+to\s+|(?:my\s+)?(?:user\s+)?preference:\s*|(?:very\s+)?important:\s*"
    r"|(?:todo|fixme):\s*)",
    _FLAGS,
)
_EMPHASIS: Final = ("**", "__")
_STUCK_BEFORE: Final = frozenset("!_-.$/\\=@#'\"`[{<&?%+")
_STUCK_AFTER: Final = frozenset("_-=([{<>/\\&%+]}\"'`;")


def judge(passage: Passage) -> tuple[ObservationType, float]:
    """Return what a passage is about, and its confidence, from its words alone.

    A question or a denial has confidence 0, a supposition half. Orders count: in tool output, "fix:
    …, solved by …" looks like one, and leaving orders out cost 3 points of recall on held-out data.
    """
    sentence, at = passage.sentence, passage.at
    match = _WORDS.match(sentence, at)
    sure = _sureness(sentence, match) if match else UNKNOWN_CUE
    kind = kind_of(sentence, match[0] if match else "")
    if match is None and kind is ObservationType.NOTE and is_instruction(sentence):
        kind = ObservationType.PREFERENCE
    if is_asking(sentence):
        return kind, 0.0
    before = sentence[:at]
    is_marker = match is not None and match[0].endswith(":")
    if not is_marker and _DENIED.search(before[-60:]):
        return kind, 0.0
    if not is_marker and _SUPPOSED.search(before[-80:]):
        sure *= 0.5
    return kind, sure


def kind_of(sentence: str, cue: str = "") -> ObservationType:
    """Return what a sentence is about: by its cue, else by its other words, else a note."""
    for text in (cue, sentence):
        for kind, pattern in _TYPES:
            if pattern.search(text):
                return kind
    return ObservationType.NOTE


def without_label(sentence: str) -> str:
    """Return a sentence without a leading "Remember that", "IMPORTANT:" or "TODO:"."""
    match = _TAG.match(sentence)
    return without_request(sentence) if match is None else sentence[match.end() :].strip()


def _sureness(sentence: str, match: re.Match[str]) -> float:
    before, after = sentence[: match.start()][-80:], sentence[match.end() :][:80]
    for form in _FORMS:
        if (
            form.cue.fullmatch(match[0])
            and (form.before is None or form.before.search(before))
            and (form.after is None or form.after.match(after))
        ):
            return form.sure
    return UNKNOWN_CUE


def is_stuck(before: str, cue: str, after: str) -> bool:
    """Return whether a cue is part of a name, as in ``remember-me``, or of code, as ``!important``.

    ``before`` and ``after`` are the two characters on either side in the text.
    """
    if _WORDS.fullmatch(cue) is None:
        return False
    last = before[-1:]
    opens = last in "\"'`#" and not before[:-1].strip(" #-*>\n,;:[({")  # a quotation, a comment
    if last and last in _STUCK_BEFORE and before not in _EMPHASIS and not opens:
        return True
    return bool(after[:1]) and after[0] in _STUCK_AFTER and after not in _EMPHASIS
