"""What an assistant reports: what it did and the result, what it will do when, what was decided.

What it explains, proposes or offers is not kept: nobody said that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agent_memory.extraction.rules.values import DATE, TIME
from agent_memory.text.phrases import pattern, words_of
from agent_memory.text.speech_acts import is_asking, is_small_talk

_JUDGED: Final = 1_000
"""Characters of a sentence that are judged. Anything longer is not a sentence."""
_DONE: Final = (
    r"(?:(?:book|schedul|order|reserv|sav|remember|cancel|pa(?:y|id)|submit|send|sent|set)\w*"
    r"|noted?\b)"
)
_LASTING: Final = pattern(
    rf"\bI(?:'ve|'ll| have| will)?\s+(?:just\s+|now\s+|also\s+)?{_DONE}"
    r"|\bwe (?:decided|agreed|chose|settled|will use)\b|\bdecision(?: is|:)"
    r"|\breminder (?:is )?set\b"
    r"|\b(?:I|we)(?:'ll| will)\b[^.!?]{0,80}?\b"
    rf"(?:tomorrow\b|(?:on|at|by|until|before) (?:{DATE}|{TIME})\b)"
    r"|\byour \w+(?: \w+){0,3} (?:is|are|was|will be)\b"
)
_OF_TEXT: Final = words_of(
    """
    used tried checked looked reviewed analy[sz]ed searched noticed assumed wanted needed thought
    understood misunderstood mentioned explained described listed summari[sz]ed outlined provided
    included attached highlighted suggested recommended proposed apologi[sz]ed based drafted
    translated generated shortened simplified rewrote rephrased formatted answered asked called
    worked hoped liked wished considered interpreted focused missed skipped limited
    """
)
"""What an assistant does with words: the answer itself, or the way to it."""
_DID: Final = pattern(
    r"(?:^|.*[.!?,:;]\s|.*\band )\W*(?:I|we)(?:'ve| have)?\s+"
    r"(?:(?:just|now|also|already|successfully|then)\s+)*"
    rf"(?!{_OF_TEXT}\b)(?:\w+ed|built|bought|made|moved|put|ran|rebuilt|set|took|won|found)\b"
)
_REPORTED: Final = pattern(
    r"\W*(?:(?:great|perfect|okay|ok|sure|yes|done|it's|that's|just|now)\b\W+)*"
    r"(?:(?:(?:all )?done|all set|booked|ordered|reserved|scheduled|cancell?ed|confirmed|paid|sent"
    r"|fixed|deployed|merged|created|deleted|removed|updated|installed|renamed|moved|pushed"
    r"|committed|saved|migrated|restarted|published|released|refunded|enabled|disabled)"
    r"(?:(?P<colon>:)|\s*[,;\u2013\u2014-]|\s(?!(?:in|by|from|as|with|to|of)\b))"
    r"|(?:added|set|changed):)"
)
"""A report without its subject: "Booked: seat 41", but not "Created in 1995, it is …"."""
_IS_DONE: Final = pattern(
    rf"\b(?:has|have) (?:now |just )?been (?:confirm|{_DONE})"
    r"|^\W*(?:the|your|our)\b[^.!?]* (?:is|are) now (?:\w+(?:ing|ed)|live|up|open|online|at|on)\b"
)
_FINISHED: Final = pattern(
    r"\W*(?:(?:great|perfect|okay|ok|sure|yes)\W+)?(?:it's |that's )?"
    r"(?:all )?(?:done|set|finished|fixed|complete[d]?|booked|ordered|deployed)\W*"
)
"""A report without content, whose result comes next: "Done. The server runs at 10.0.0.7"."""
_HERE: Final = pattern(
    r"\b(?:below|above|here(?:'s)?|this|following|you (?:can|could|should|may))\b"
)
_EXACT: Final = pattern(r"\d|\w[./]\w|(?<=\w )(?-i:(?!I\b)[A-Z])\w")
"""A number, a name or a file."""
_SAID_OFTEN: Final = frozenset(
    """
    a an and the that this it its your my our of in to for on with now as well some all more so is
    was be file files code function script text answer example examples change changes error bug
    issue problem list page table version response message few new necessary needed required
    """.split()
)


def with_reports(parts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each sentence of an assistant, and whether it reports something that lasts."""
    is_reporting = False
    for part in parts:
        head = part[:_JUDGED]
        lasts = not is_small_talk(head) and (
            _LASTING.search(head) is not None
            or _reports(head)
            or (is_reporting and _EXACT.search(head) is not None and not _is_about_answer(head))
        )
        is_reporting = lasts or _FINISHED.fullmatch(head) is not None
        yield part, lasts


def _reports(head: str) -> bool:
    """Return whether a sentence says what was done, and names it: not only "I fixed the bug"."""
    if _is_about_answer(head):
        return False
    reported = _REPORTED.match(head)
    named = _DID.match(head) or (reported if reported and reported["colon"] else None)
    if named is not None:
        words = head[named.end() :].lower().replace(".", " ").split()
        return any(word.strip("!,:;()") not in _SAID_OFTEN for word in words)
    is_reported = reported is not None or _IS_DONE.search(head) is not None
    return is_reported and _EXACT.search(head) is not None


def _is_about_answer(head: str) -> bool:
    return _HERE.search(head) is not None or is_asking(head)
