"""Facts without a language model: what a conversation says that is worth keeping, as it was said.

A message is one fact, prefixed with the speaker's name, if any of its sentences is worth keeping:
on real conversations that is found far better than the single sentences (``bench.extraction``). A
value of which there is only one at a time ("I live in Lisbon") is a fact of its own, so that the
next value can replace it. Greetings, thanks, reactions and questions that say nothing make no fact;
among people they stay beside one, since they tell what it is about, and with an assistant they are
dropped. So are requests, except for the steps of instructions in a message; a question that the
message answers itself stays, and so does a single word beside others. A short answer to a question
of an assistant is a fact behind that question (``answers``). A text that a user quotes, or wants
to have translated, is kept as a quotation, whatever it says (``text.quotations``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from agent_memory.extraction.rules.answers import answer_to
from agent_memory.extraction.rules.assistants import Denial, denial_of, is_guess
from agent_memory.extraction.rules.corrections import corrected, is_of_a_value_alone
from agent_memory.extraction.rules.statements import statement
from agent_memory.extraction.rules.values import DATE, TIME
from agent_memory.extraction.types import Fact
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.models.enums import MemoryCategory
from agent_memory.text.program_output import split_at_output
from agent_memory.text.quotations import FENCED, Quotation, parted
from agent_memory.text.sentences import fitting, sentences, tells_steps, with_lists_joined
from agent_memory.text.small_talk import (
    is_made_of_small_talk,
    is_remark_of_the_moment,
    opening_end,
)
from agent_memory.text.speech_acts import (
    is_asking,
    is_bare_name,
    is_instruction,
    is_order,
    is_request_to_forget,
    is_request_to_remember,
    is_small_talk,
    without_request,
)

_OF_SPEAKER: Final = 0.7
_OF_OTHERS: Final = 0.5
"""The confidence that a sentence is worth keeping, about its speaker and about others."""
_LONGEST: Final = 500
"""Maximum characters of a fact. A longer message becomes several."""

_JUDGED: Final = 1_000
"""Characters of a sentence that are judged. Anything longer is not a sentence."""

_ANSWER_WORDS: Final = 8
_LISTED_NAMES: Final = 3
"""The number of single words that make a list."""
_TO_ME: Final = re.compile(r"\b(?:me|us)\b", re.IGNORECASE)
"""Marks a request to an assistant, not a step of instructions."""
_SELF: Final = re.compile(
    r"\b(?:I|my|mine|me|myself|we|our|ours|us)\b|我|私|僕|俺|저는?|나는|내 ", re.IGNORECASE
)
_PROGRAM: Final = re.compile(r"(?:`{3,}|~{3,})[^`~].* (?:`{3,}|~{3,})")
"""The same on one line."""
_BARE_PROGRAM: Final = re.compile(
    r"(?:[A-Z]\w*Error: (?:['\"][^'\"]*['\"]|No module named \S+|name \S+ is not defined"
    r"|\S+ is not (?:a function|defined|iterable|callable))"
    r"|SELECT\b.*\bFROM \w+.*;|for \w+ in [^:]*\): ?\w+\(.*\)|def \w+\(.*|print\(.*\)"
    r"|git (?:add|checkout|clone|commit|fetch|merge|pull|push|rebase|status)"
    r"(?: (?:-\S+|origin|upstream|main|master|HEAD|\.))*"
    r"|(?:npm i(?:nstall)?|pip install)(?: -\S+)* (?!(?:fail|work|hang|break|take|run)s$)[\w@./-]+)"
)
"""A line of a program, or its error, without a fence; beside words it stays."""
_LEADS_TO_PROGRAM: Final = re.compile(r"(?:(?<!this)(?<!error):|\bwith)\s*$", re.IGNORECASE)
"""The end of a line that says what the next is for: "Install with:"."""
_DONE: Final = (
    r"(?:book|schedul|order|reserv|sav|not|remember|cancel|pa(?:y|id)|submit|send|sent|set)\w*"
)
_JOINT: Final = re.compile(r"(?<=[\u3002\uff01\uff1f]) ")
"""The space after a Chinese or Japanese sentence, where none belongs."""
_LASTING: Final = re.compile(
    rf"\bI(?:['\u2019]ve|['\u2019]ll| have| will)?\s+(?:just\s+|now\s+|also\s+)?{_DONE}"
    r"|\bwe (?:decided|agreed|chose|settled|will use)\b|\bdecision(?: is|:)"
    r"|\breminder (?:is )?set\b"
    r"|\b(?:I|we)(?:['\u2019]ll| will)\b[^.!?]{0,80}?\b"
    rf"(?:tomorrow\b|(?:on|at|by|until|before) (?:{DATE}|{TIME})\b)"
    r"|\byour \w+(?: \w+){0,3} (?:is|are|was|will be)\b",
    re.IGNORECASE,
)
"""What an assistant says that lasts: what it did, or will do at some time, what was decided."""


def facts_by_rules(messages: Sequence[Message]) -> list[Fact]:
    """Return what a conversation says that is worth keeping, in its order, each fact once.

    ``sources`` are positions in ``messages``. What is repeated stands where it was said last: "I
    live in Bergen", "I moved to Oslo" and "I live in Bergen" end in Bergen.
    """
    facts: dict[str, Fact] = {}
    roles = {message.role for message in messages}
    is_among_people = MessageRole.ASSISTANT not in roles and any(
        message.name for message in messages
    )
    said_before: dict[str | None, tuple[int, str]] = {}
    names = frozenset(message.name for message in messages if message.name)
    denial: Denial | None = None
    is_beside = _says_more(messages)
    for place, message in enumerate(messages):
        text = message.text
        if message.role is MessageRole.USER:
            before, earlier = said_before.get(message.name, (place, ""))
            others = [other.text for other in messages[before + 1 : place]]
            if not _is_corrected_answer(messages, place):
                text = corrected(text, earlier, others, names)
            said_before[message.name] = place, text
        answers, text = _answers_of(messages, place, text, denial)
        denial = _denial_after(messages, place)
        quoted: list[Fact] = []
        if message.role is MessageRole.USER and not is_among_people:
            text, quoted = _without_quotations(message, place, text)
        rest = _facts_of(message, text, place, is_among_people=is_among_people)
        for fact in (*answers, *(rest if denial is None else ()), *quoted):
            known = facts.pop(form := fact.text.casefold(), None)
            sources = () if known is None else known.sources
            facts[form] = (known or fact)._replace(
                sources=(*sources, *fact.sources), is_beside=is_beside
            )
    return list(facts.values())


def _is_corrected_answer(messages: Sequence[Message], place: int) -> bool:
    """Return whether "May 5. Sorry, May 6." and the like is an answer that corrects itself.

    It is kept behind its question as it is: rewritten, it would lose that.
    """
    text, before = messages[place].text, messages[max(0, place - 1)]
    if before.role is not MessageRole.ASSISTANT or corrected(text, "", ()) == text:
        return False
    answer, rest = answer_to(before.text, text, stands_alone=_stands_alone)
    return answer is not None and not rest


def _says_more(messages: Sequence[Message]) -> bool:
    """Return whether users say more in a conversation than values, greetings and the like."""
    for before, message in zip((None, *messages), messages, strict=False):
        if message.role is not MessageRole.USER:
            continue
        for place, part in enumerate(sentence[:_JUDGED] for sentence in sentences(message.text)):
            if is_made_of_small_talk(part) or _stands_alone(_bare(part)):
                continue
            if place > 0 or before is None or not _is_value_asked_for(before, part):
                return True
    return False


def _is_value_asked_for(before: Message, part: str) -> bool:
    """Return whether a sentence is a value, and the assistant only asked for it just before.

    "34" is, behind "Hi! How old are you?", but not behind "I play your doctor. How old are you?".
    """
    asked = sentences(before.text) if before.role is MessageRole.ASSISTANT else []
    question = asked[-1] if asked else ""
    if "," in question[opening_end(question) :] or not all(map(is_made_of_small_talk, asked[:-1])):
        return False
    answer, _ = answer_to(question, part, stands_alone=_stands_alone)
    return answer is not None and statement(answer) is not None


def _answers_of(
    messages: Sequence[Message], place: int, text: str, denial: Denial | None
) -> tuple[list[Fact], str]:
    """Return the facts of a reply that needs what it replies to, and the other text.

    ``denial`` is how it denies what the assistant said before it.
    """
    message, before = messages[place], messages[max(0, place - 1)]
    is_reply = message.role is MessageRole.USER and before.role is MessageRole.ASSISTANT
    if not is_reply or text != message.text or is_of_a_value_alone(text):
        return [], text
    if denial is not None:
        joined = fitting(denial.kept, _LONGEST)
        return [_fact(message, place, piece, _OF_OTHERS) for piece in joined], denial.rest
    if FENCED.search(text) or any(is_output for _, is_output in split_at_output(text)):
        return [], text
    answer, rest = answer_to(before.text, text, stands_alone=_stands_alone)
    return [_fact(message, place, answer, _OF_SPEAKER)] if answer else [], rest


def _denial_after(messages: Sequence[Message], place: int) -> Denial | None:
    """Return how a user denies at once what an assistant says at a place; ``None`` if not."""
    message, following = messages[place], messages[place + 1 : place + 2]
    is_replied_to = following and following[0].role is MessageRole.USER
    if not is_replied_to or message.role is not MessageRole.ASSISTANT:
        return None
    parts = pairwise(["", *_read(message.text)[1]])
    claims = [part for before, part in parts if _worth(part, message.role, before)]
    return denial_of(claims, message.text, following[0].text, stands_alone=_stands_alone)


def _facts_of(message: Message, text: str, place: int, *, is_among_people: bool) -> Iterator[Fact]:
    """Yield the facts of a message's text: those of single sentences, and the rest together."""
    if message.role is MessageRole.SYSTEM:
        return
    rest: list[str] = []
    worth = 0.0
    text, parts, output = _read(text)
    beside = _beside(text, parts) if message.role is MessageRole.USER else frozenset()
    answers = frozenset(place + 1 for place in beside if is_asking(parts[place]))
    for number, sentence in enumerate(parts):
        if number in output or _is_program(sentence, parts[number - 1] if number else ""):
            rest += [sentence] if message.role is MessageRole.USER else []
            continue
        sure = _worth(sentence, message.role, parts[number - 1] if number else "")
        if sure and not is_among_people and is_instruction(sentence):
            fact = _fact(message, place, _bare(sentence), sure)
            yield fact._replace(category=MemoryCategory.PREFERENCE)
        elif sure and _stands_alone(_bare(sentence)) and number not in answers:
            yield _fact(message, place, _bare(sentence), sure)
        elif (
            sure
            or number in beside
            or _belongs(sentence, message.role, keeps_small_talk=is_among_people)
        ):
            rest.append(_bare(sentence))
            worth = max(worth, sure)
    if not worth and (_has_names(parts, beside) or _is_shown(parts, output)):
        worth = _OF_OTHERS
    if worth:
        for piece in fitting(_JOINT.sub("", " ".join(rest)), _LONGEST):
            yield _fact(message, place, piece, worth)


def _without_quotations(message: Message, place: int, text: str) -> tuple[str, list[Fact]]:
    """Return what a user says in a message, and the facts of the texts that it quotes."""
    own: list[str] = []
    quoted: list[Fact] = []
    asked = ""
    for part in parted(text):
        if not isinstance(part, Quotation):
            # "> Do you have pets?" and below it "Yes, two cats."
            answer, rest = answer_to(asked, part, stands_alone=_stands_alone)
            quoted += [_fact(message, place, answer, _OF_SPEAKER)] if answer else []
            own.append(rest)
            asked = ""
            continue
        asked = "" if part.lead else _unmarked(part.text)
        if part.is_fiction:
            continue
        if is_request_to_remember(part.lead):
            own.append(f"{part.lead}\n{_unmarked(part.text)}")
        elif any(_worth(sentence, MessageRole.USER) for sentence in sentences(part.text)):
            pieces = part.written(_LONGEST)
            quoted += [_fact(message, place, piece, _OF_OTHERS) for piece in pieces]
        elif not part.lead.endswith(":"):
            own.append(part.lead)
    return "\n".join(own), quoted


def _unmarked(text: str) -> str:
    return re.sub(r"^[ \t]*(?:>[ \t]*|\"|-{3,}[ \t]*$)|\"$", "", text, flags=re.MULTILINE).strip()


def _is_program(sentence: str, lead: str) -> bool:
    """Return whether a line is of a program, and the line before does not say what it is for."""
    if _PROGRAM.fullmatch(sentence):
        return True
    is_bare = _BARE_PROGRAM.fullmatch(sentence[:_JUDGED]) is not None
    return is_bare and _LEADS_TO_PROGRAM.search(lead[-_JUDGED:]) is None


def _is_shown(parts: Sequence[str], output: frozenset[int]) -> bool:
    """Return whether a program is shown in a fence, without a question or a request."""
    others = [part for place, part in enumerate(parts) if place not in output]
    words = [part.rstrip(" :") for part in others if not _PROGRAM.fullmatch(part)]
    return len(words) < len(others) and not any(is_asking(part) or is_order(part) for part in words)


def _read(text: str) -> tuple[str, list[str], frozenset[int]]:
    """Return a text in words, its sentences, and which of these are what a program printed.

    A program in a fence is one sentence, on one line, and so is such output. Their lines state
    nothing: "width: 50%" is not a memory, and replaces none.
    """
    words: list[str] = []
    parts: list[str] = []
    output: set[int] = set()
    end = 0
    for fenced in [*FENCED.finditer(text), None]:
        for piece, is_output in split_at_output(text[end : fenced.start() if fenced else None]):
            if is_output:
                output.add(len(parts))
                parts.append(" ".join(piece.split()))
                continue
            words.append(with_lists_joined(piece))
            parts += sentences(words[-1])
        if fenced is not None:
            parts.append(" ".join(fenced[0].split()))
            end = fenced.end()
    return "\n".join(words), parts, frozenset(output)


def _beside(text: str, parts: Sequence[str]) -> frozenset[int]:
    """Return the sentences of a user's message that say something only beside its others.

    They are single words, steps of instructions in the message, and questions it answers itself.
    """
    has_steps = (
        len(parts) > 1 and tells_steps(text) and not (is_asking(parts[0]) or is_order(parts[0]))
    )
    return frozenset(
        place
        for place, sentence in enumerate(parts)
        if len(parts) > 1
        and not _TO_ME.search(sentence[:_JUDGED])
        and (
            is_bare_name(sentence)
            or (has_steps and is_order(sentence))
            or (is_asking(sentence) and place + 1 < len(parts) and _answers(parts[place + 1]))
        )
    )


def _answers(sentence: str) -> bool:
    """Return whether a sentence may be an answer: short, and not about the speaker."""
    head = sentence[:_JUDGED]
    if len(head.split()) > _ANSWER_WORDS or is_asking(head) or _SELF.search(head):
        return False
    return is_bare_name(head) or not is_small_talk(head)


def _has_names(parts: Sequence[str], beside: frozenset[int]) -> bool:
    """Return whether single words make a fact together: a list, or a heading with steps."""
    names = sum(is_bare_name(parts[place]) for place in beside)
    return names >= _LISTED_NAMES or (names > 0 and len(beside) > names)


def _belongs(sentence: str, role: MessageRole, *, keeps_small_talk: bool) -> bool:
    """Return whether a sentence that is not worth keeping alone stays beside one that is."""
    sentence = sentence[:_JUDGED]
    if role is not MessageRole.USER or is_made_of_small_talk(sentence):
        return False
    return keeps_small_talk or not is_small_talk(sentence)


def _stands_alone(sentence: str) -> bool:
    return statement(sentence) is not None or is_request_to_forget(sentence)


def _bare(sentence: str) -> str:
    """Return a sentence without a leading "Remember that", beginning with a capital."""
    bare = without_request(sentence)
    return sentence if bare == sentence else bare[0].upper() + bare[1:]


def _fact(message: Message, place: int, text: str, confidence: float) -> Fact:
    return Fact(spoken(message, text), (place,), confidence, message.name)


def spoken(message: Message, text: str) -> str:
    """Return what was said, prefixed with the speaker's name if it is known."""
    return f"{message.name}: {text}" if message.name else text


def _worth(sentence: str, role: MessageRole, before: str = "") -> float:
    """Return the confidence that a sentence says something to keep; 0 if it does not.

    ``before`` is the sentence before it.
    """
    sentence = sentence[:_JUDGED]
    # Beside others a remark stays: "My office has no heating. It's cold."
    if is_small_talk(sentence) or is_remark_of_the_moment(sentence):
        return 0.0
    if role is MessageRole.ASSISTANT:
        claims = _LASTING.finditer(sentence)
        is_claimed = not all(is_guess(sentence, claim, before) for claim in claims)
        return _OF_OTHERS if is_claimed else 0.0
    is_stated = is_request_to_remember(sentence) or _SELF.search(sentence) is not None
    return _OF_SPEAKER if is_stated else _OF_OTHERS
