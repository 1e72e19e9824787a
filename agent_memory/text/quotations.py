"""Quotations: texts in a message that are no statements of its sender.

"Translate this to French. My birthday is June 9." says nobody's birthday, nor does a pasted mail,
or what is said in a story. Such a text has marks of its own (``>`` before its lines, quotation
marks, rules around it, a greeting and a signature), or follows the sentence that asks to work on
it, announces it, or begins a play: then it goes on to the end of the message. Only the signs of a
text that is at hand count: "Check this: our API is down" and "Summarise my week: I met Ann" have
none, and state what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agent_memory.text.phrases import ASSISTANTS, any_of, pattern, words_of
from agent_memory.text.sentences import fitting, sentence_spans

_LONGEST_LEAD: Final = 200
"""Characters. What is longer announces nothing."""
_LEAST_WORDS: Final = 4
"""Words of a text below its heading: fewer are a value ("Work email:")."""

# What texts are called ----------------------------------------------------------------------

_FICTION: Final = words_of(
    """
    stor(?:y|ies) tales? novels? poems? songs? lyrics limericks? haikus? sonnets? verses?
    screenplays? dialogues? monologues? scenes? chapters? characters? jokes?
    """
)
_TEXT: Final = (
    rf"(?:{_FICTION}|"
    + words_of(
        """
        texts? (?:e-?)?mails? messages? letters? tickets? complaints? reviews? posts? tweets?
        comments? articles? essays? intros? introductions? paragraphs? passages? excerpts?
        sentences? transcripts? threads? repl(?:y|ies) responses? bios? profiles? speech(?:es)?
        drafts? abstracts? diar(?:y|ies)
        """
    )
    + ")"
)
_IS_WHOLE: Final = (
    r"(?=:|[\W_]*$|[\W_]*\s"
    + words_of(
        """
        of from by to for below above about that which I we s?he they and please in into so with on
        as
        """
    )
    + r"\b)"
)
"""What follows the name of a text; that of "text colour" names none."""
_THIS: Final = "(?:this|these|the following)"
_SHOWN: Final = rf"(?:{_THIS}|that|[\w-]+'s?) (?:[\w-]+ ){{0,2}}?{_TEXT}\b"
"""A text that is at hand: "this short mail", "my friend's text"."""
_QUALITY: Final = (
    "(?:grammar|spelling|punctuation|typos|wording|phrasing"
    "|(?:my|the|this|his|her) (?:english|german|french|spanish))"
)
_WRITTEN: Final = words_of("cards? invitations? captions? toasts? vows?")

# What leads to one --------------------------------------------------------------------------

_ASKED: Final = (
    r"^\W*(?:(?:hi|hey|hello|ok|okay|so|and|now|then|please|kindly|just|also|quickly|let's"
    r"|(?:could|can|would|will) you|help (?:me|us)(?: to)?"
    r"|I(?:'d| would)? (?:need|want|like) you to)[\s,!]+)*"
)
_LANGUAGES: Final = words_of("translate proof-?read paraphrase rephrase reword spell-?check")
_RETELL: Final = words_of("summari[sz]e condense rewrite shorten polish continue finish improve")
_WORK_ON: Final = words_of(
    f"""
    {_RETELL} check correct fix edit review expand read look analy[sz]e explain critique answer
    comment reply respond
    """
)
_ABROAD: Final = words_of(
    """
    übersetze? übersetzt traduce traduci traduis traduisez traduza vertaal переведи
    korrigiere corrige .*翻译 .*翻訳 .*번역
    """
)
"""Requests to translate or correct, in other languages."""
_WRITE: Final = "(?:write|compose|draft|tell|invent|make up|create|generate|continue)"
_A: Final = "(?:an?|the|another|some|my|our)"
_REQUEST: Final = pattern(
    _ASKED
    + any_of(
        rf"""
        {_LANGUAGES}(?:\W*$|:|\W+(?:(?:in)?to|from|{_THIS}|that)\b|\b.*\b{_TEXT}\b)
        {_RETELL}\W+{_THIS}(?:\W*$|:| (?:for|in|into|to|please|and|as)\b)
        {_RETELL}\b.*\b(?:the|my|our) (?:\w+ )?{_TEXT}\b{_IS_WHOLE}
        {_WORK_ON}\b.*\b(?:{_SHOWN}{_IS_WHOLE}|{_QUALITY}\b)
        {_WRITE}(?: (?:me|us))? {_A} (?:[\w-]+ ){{0,3}}?(?:{_TEXT}|{_WRITTEN})\b{_IS_WHOLE}
        (?:say|put) (?:it|this|that) in (?-i:[A-Z])\w
        make {_THIS} (?:sound|read)\b
        {_ABROAD}
        """
    )
    + r"|.*\b(?:reply|replies|respond|response|answer) to "
    + rf"(?:{_THIS}(?:\W*$| (?:for|in|from|please)\b)|{_SHOWN})"
    + rf"|(?=.*\b(?:wrong|correct|right|ok|okay|good|clear|mean|means|sound|sounds|read well)\b)"
    rf".*\b{_THIS} (?:[\w-]+ ){{0,2}}?{_TEXT}\b.*[?\uff1f]"
)
"""It asks to work on a text or to write one."""
_PLAY: Final = pattern(
    r"^\W*(?:(?:please|now|ok|okay|so|then|just|(?:could|can) you|let's)[\s,]+)*"
    r"(?:(?:(?:pretend|suppose|imagine|assume) (?:that )?(?:I(?! should)|im|you(?! are right)|we)"
    r"|say I)\b(?!.*!)|pretend to be|role-?play\b|act (?:as|like) (?!if\b)"
    r"|play (?:an?|the|my) (?:\w+ )?(?:role|part|game|character))"
)
_REPORTS: Final = words_of(
    """
    wrote writes said says asks asked texted replied posted tweeted e-?mailed messaged complained
    """
)
_ANNOUNCED: Final = pattern(
    r"(?=.*:[\s\"*_]*$|\W*(?:here(?:'s| is| are)|below (?:is|are)|the following) "
    r"|\W*this is (?:an?|the|[\w-]+'s) )(?:"
    rf"(?!\W*(?:I|we)\b)(?:.*\b)?(?<!\bmy )(?<!\bour ){_TEXT}\b{_IS_WHOLE}"
    rf"|.*\b(?:my|our) (?:\w+ )?{_FICTION}\b{_IS_WHOLE}"
    rf"|(?!.*\b(?:I|we)\b).*\b(?:{_REPORTS}|sent (?:me|us))(?: (?:me|us|this|back|that))*:)"
)
_BARE_FICTION: Final = pattern(
    rf"{_ASKED}{_WRITE}(?: (?:me|us))? an? (?:\w+ ){{0,2}}{_FICTION}\W*$"
)
"""A request for a story that says nothing of whom it is for."""

_LASTS: Final = pattern(r"\b(?:from now on|always|immer|toujours|siempre|every time)\b")
_IS_VALUE: Final = re.compile(r"\s*(?:\S+@\S+|\w+://|[A-Z]+-\d)")
_OF_OTHERS: Final = pattern(
    rf".*(?:\b(?:{_REPORTS}|sent)\b|'s?\b|\b(?:from|by|of) )"
    rf"|.*\b(?:an?|the|this|following) (?:\w+ )?{_FICTION}\b"
)
"""What is not the sender's own: "Tom's mail", "a letter from Ann", a song."""
_COLON: Final = re.compile(r":[*_]*\s+(?=\S)")
_OPEN: Final = re.compile(r"[:?][\s*_]*$")
_HAS_WORD: Final = re.compile(r"\w")
_HAS_TEXT: Final = re.compile(r":\s*\w|[\"\u201c\u00ab]")
_POINTS_BACK: Final = pattern(r"\b(?:this|that|these|above)\b")
_CHANGES_SUBJECT: Final = pattern(r"(?:(?<=[.!?] )|(?<=\n))(?:by the way|btw|on another note)\b")
FENCED: Final = re.compile(
    r"(?<![`~])(?P<fence>`{3,}+|~{3,}+)[^\n`~]*\n.*?(?P=fence)[`~]*", re.DOTALL
)
"""A program in a message, on lines of its own."""
_FENCE: Final = re.compile(r"\s*(?:`{3}|~{3})")
_SELF: Final = pattern(r"\b(?:I|my|me|mine|we|our|us|im|ive)\b")

# Marks --------------------------------------------------------------------------------------

# "> 90 %" is no quotation, and ">>> print()" a program.
_LINES: Final = re.compile(
    r"^[ \t]*>(?!>>|=|\s*$| ?[\d.,]+ ?\S{0,10}$).*(?:\n[ \t]*>.*)*", re.MULTILINE
)
_IN_QUOTES: Final = re.compile(
    r"(?:(?<=[.!?:]\s)|^)[ \t]*(?:\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb)"
    r"(?=[ \t.]*$|(?<=[.!?]\W)\s)",
    re.MULTILINE,
)
"""What begins and ends like a sentence, unlike that in '"Rex" is my dog'."""
_RULE: Final = "(?:-{3,}|={3,}|\\*{3,}|_{3,})[ \\t]*"
_BETWEEN_RULES: Final = re.compile(
    rf"^{_RULE}\n(?:(?!---|===|\*\*\*|___).*\n)+{_RULE}$", re.MULTILINE
)
_GREETING: Final = re.compile(
    r"(?:^|(?<=[.:?] ))[ \t]*(?:Dear|Hi|Hello|Hey|Good (?:morning|afternoon|evening))"
    rf" (?!(?:there|assistant|bot|ai|{ASSISTANTS})\b)[\w .'\u2019-]{{2,40}}[,:]",
    re.MULTILINE | re.IGNORECASE,
)
_SIGNATURE: Final = re.compile(
    r"(?:^|(?<=[.!?,] ))(?:best|(?:(?:kind|best|warm) )?regards|(?:best|kind|warm) wishes"
    r"|sincerely|yours(?: \w+)?|cheers|love),?\s+"
    r"(?-i:[A-Z])[\w.-]+(?: (?-i:[A-Z])[\w.-]+)?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)


class Quotation(NamedTuple):
    """A text that is no statement of its sender, behind the sentence that leads to it."""

    lead: str
    text: str

    @property
    def is_fiction(self) -> bool:
        """Return whether it is for a story of which nothing is known: "Write a story: I am …"."""
        return self.lead.endswith(":") and _BARE_FICTION.match(self.lead) is not None

    def written(self, longest: int) -> Iterator[str]:
        """Yield it as it is kept, in pieces: below its lead, each line with a mark.

        What was typed without marks would be read as a statement when it is compared.
        """
        for piece in fitting(self.text, max(longest - len(self.lead), longest // 2)):
            lines = (line.strip() for line in piece.split("\n") if _HAS_WORD.search(line))
            marked = (line if line.startswith(">") else f"> {line}" for line in lines)
            yield "\n".join([self.lead, *marked] if self.lead else marked)


def has_quotation(text: str) -> bool:
    """Return whether a text has lines that are marked as a quotation."""
    return ">" in text and _LINES.search(text) is not None


def parted(message: str) -> list[str | Quotation]:
    """Return a message in parts: what its sender says, and the texts that it quotes."""
    parts: list[str | Quotation] = []
    begin = 0
    for start, end in [*_marked(message), (len(message), len(message))]:
        plain = message[begin:start]
        first, last = _lead_in(plain, is_before_mark=start < end)
        lead = plain[first:last].strip()
        if plain[last:].strip():
            ends = _CHANGES_SUBJECT.search(message, begin + last)
            till = ends.start() if ends else len(message)
            parts += [plain[:first], Quotation(lead, message[begin + last : till].strip())]
            parts.append(message[till:])
            break
        if start == end:
            parts.append(plain)
        else:
            parts += [plain[:first], Quotation(lead, message[start:end].strip())]
        begin = end
    if len(parts) == 1:
        return _below_lead(message)
    return [part for part in parts if isinstance(part, Quotation) or part.strip()]


def _below_lead(message: str) -> list[str | Quotation]:
    """Return a message whose last sentence asks to work on what is above it: "Translate this"."""
    spans = [span for span in sentence_spans(message) if message[slice(*span)].strip()]
    if len(spans) < 2:
        return [message]
    begin = spans[-1][0]
    text, last = message[:begin].strip(), message[begin:].strip()
    is_of_text = _REQUEST.match(last) and _POINTS_BACK.search(last) and not _HAS_TEXT.search(last)
    return [Quotation(last, text)] if is_of_text and _SELF.search(text) else [message]


def _marked(message: str) -> list[tuple[int, int]]:
    """Return where the texts with marks of their own are."""
    spans = [match.span() for match in _LINES.finditer(message)]
    spans += [match.span() for match in _IN_QUOTES.finditer(message) if _SELF.search(match[0])]
    spans += [
        match.span()
        for match in _BETWEEN_RULES.finditer(message)
        if _opens(message[: match.start()].rstrip().rpartition("\n")[2])
    ]
    greeting = None if spans else _GREETING.search(message)
    signature = _SIGNATURE.search(message, greeting.end()) if greeting else None
    if greeting and signature:
        spans.append((greeting.start(), signature.end()))
    programs = [match.span() for match in FENCED.finditer(message)]
    marked: list[tuple[int, int]] = []
    last = 0
    for begin, end in sorted([*programs, *spans]):
        if begin >= last:
            last = end
            marked += [(begin, end)] if (begin, end) not in programs else []
    return marked


def _lead_in(plain: str, *, is_before_mark: bool) -> tuple[int, int]:
    """Return where the sentence is that leads to a text; at the end, if there is none."""
    last = len(plain), len(plain)
    for begin, end in sentence_spans(plain):
        sentence = plain[begin:end].strip()
        if not sentence:
            continue
        colon = _COLON.search(sentence[:_LONGEST_LEAD])
        if colon and _leads(head := sentence[: colon.end()].strip()) and _may_be_inline(head):
            is_all = not plain[end:].strip()
            if not is_all or _BARE_FICTION.match(head) or sentence.endswith("?"):
                return begin, plain.index(sentence, begin) + colon.end()
        elif _leads(sentence) and _may_follow(sentence, plain[end:]):
            return begin, end
        last = begin, end
    return last if is_before_mark and _opens(plain[slice(*last)]) else (len(plain), len(plain))


def _may_be_inline(head: str) -> bool:
    """Return whether a text may follow in the line; "Email: a@b.example" has a value there."""
    is_asked = _REQUEST.match(head) or _PLAY.match(head)
    return bool(is_asked or _OF_OTHERS.match(head))


def _opens(sentence: str) -> bool:
    """Return whether a sentence may lead to a text with marks: "Can you answer him?"."""
    return _OPEN.search(sentence[-_LONGEST_LEAD:]) is not None or _leads(sentence.strip())


def _may_follow(lead: str, rest: str) -> bool:
    """Return whether what follows may be the text; a program has a fence, a value few words."""
    if not rest.strip():
        return True
    is_value = _ANNOUNCED.match(lead) and len(rest.split(maxsplit=_LEAST_WORDS)) < _LEAST_WORDS
    return not (is_value or _FENCE.match(rest) or _IS_VALUE.match(rest))


def _leads(sentence: str) -> bool:
    """Return whether a sentence asks to work on a text, announces one, or begins a play."""
    return (
        len(sentence) <= _LONGEST_LEAD
        and not _LASTS.search(sentence)
        and any(lead.match(sentence) for lead in (_REQUEST, _PLAY, _ANNOUNCED))
    )
