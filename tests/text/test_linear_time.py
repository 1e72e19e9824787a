"""No text that anybody may write takes long: time grows with its length, and not faster.

For each pattern there are texts that repeat what it matches, nearly matches, begins and ends with.
A text that takes longer than it should is taken four times as long: quadratic time is sixteen
times as much, linear time four, whatever else the machine does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from functools import partial

import pytest
from worst_cases import patterns_of, pieces

from agent_memory.extraction.llm.answers import BadAnswer, json_object
from agent_memory.extraction.messages import conversation
from agent_memory.extraction.rules.conflicts import conflict
from agent_memory.extraction.rules.decisions import decide_by_rules
from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.extraction.rules.graph import graph_updates_by_rules
from agent_memory.extraction.rules.lasting import lasts
from agent_memory.extraction.rules.readings import read
from agent_memory.extraction.rules.statements import stated_in
from agent_memory.extraction.types import Fact
from agent_memory.integrations.capture.observations import scan
from agent_memory.models.conversation import Message
from agent_memory.services.policies.rejection_match import find_rejected
from agent_memory.text.careful_typing import carefully_typed
from agent_memory.text.dates import date_spans
from agent_memory.text.normalize import exact_form, near_form
from agent_memory.text.program_output import split_at_output
from agent_memory.text.quotations import parted
from agent_memory.text.sanitize import as_data
from agent_memory.text.secrets import find_secrets
from agent_memory.text.sentences import sentences
from agent_memory.text.speech_acts import is_request_to_forget, is_small_talk
from agent_memory.text.standing_orders import standing_orders
from agent_memory.text.stems import stems

LENGTH = 10_000
SECONDS = 0.05
FACTOR = 4
MOST_GROWTH = 9.0
QUICK_GROWTH = 6.0
"""What one look at each length may grow by; beyond it, each is measured again, and longer."""


def read_answer(text: str) -> None:
    try:
        json_object(text)
    except BadAnswer:
        return


def read_facts(text: str) -> None:
    message = Message.model_validate({"role": "user", "content": "said"})
    facts_by_rules([message.model_copy(update={"content": text})])


TEXT = "agent_memory.text."
RULES = "agent_memory.extraction.rules."
CAPTURE = "agent_memory.integrations.capture."
READERS: dict[str, tuple[tuple[str, ...], Callable[[str], object]]] = {
    "secrets": ((f"{TEXT}secrets", f"{TEXT}made_up"), find_secrets),
    "secrets of tags": ((f"{TEXT}secrets",), partial(find_secrets, any_case=True)),
    "dates": ((f"{TEXT}dates",), lambda text: date_spans(text, date(2026, 1, 30))),
    "sentences": ((f"{TEXT}sentences",), sentences),
    "typing": ((f"{TEXT}careful_typing",), carefully_typed),
    "duplicates": ((f"{TEXT}normalize",), lambda text: near_form(exact_form(text))),
    "stems": ((f"{TEXT}stems",), stems),
    "prompts": ((f"{TEXT}sanitize",), as_data),
    "small talk": (
        (f"{TEXT}speech_acts", f"{TEXT}reactions", f"{TEXT}asides", f"{TEXT}requests"),
        is_small_talk,
    ),
    "forgetting": ((f"{TEXT}speech_acts",), is_request_to_forget),
    "quotations": ((f"{TEXT}quotations",), parted),
    "program output": ((f"{TEXT}program_output",), lambda text: list(split_at_output(text))),
    "facts": (
        (f"{RULES}statements", f"{RULES}facts", f"{TEXT}speech_acts", f"{TEXT}small_talk"),
        read_facts,
    ),
    "decisions": (
        (f"{RULES}decisions",),
        lambda text: decide_by_rules([Fact(f"a {text}"[:LENGTH])], [[]]),
    ),
    "conflicts": (
        tuple(RULES + name for name in "conflicts changes events values statements".split()),
        lambda text: conflict(read.__wrapped__(text), read("I live in Oslo.")),
    ),
    "statements": ((f"{RULES}statements", f"{RULES}values"), stated_in),
    "graph": ((f"{RULES}graph",), graph_updates_by_rules),
    "capture": (
        (f"{CAPTURE}observations", f"{CAPTURE}cues", f"{TEXT}passages"),
        lambda text: scan(f"remember that {text}", source="tool:bash", session_id="s"),
    ),
    "lasting facts": ((f"{RULES}lasting",), lasts),
    "standing orders": (
        (f"{TEXT}standing_orders", f"{TEXT}capture_words"),
        lambda text: list(standing_orders(f"use {text}")),
    ),
    "answers": (("agent_memory.extraction.llm.answers",), read_answer),
    "messages": (("agent_memory.extraction.messages",), conversation),
    "rejected values": (
        ("agent_memory.services.policies.rejection_match",),
        lambda text: find_rejected([("content", text)], {1: {b"one"}, 3: {b"three"}}),
    ),
}
FOUND_BY_HAND = {
    "secrets": [
        *("sk-", "sk-ant-", "sk-proj-", "-eyJ", "glpat-", "LTAI-", "-----BEGIN PRIVATE KEY-----"),
        *("token=", "AccessKey=", "password: '", "://a:", "SG-", "login: a / ", "login for a "),
    ],
    "duplicates": ["\u2026"],
    "program output": ["\n", "npm ERR! a\n\n", "@@ -1 +1 @@\n-", "diff --git a b\n+"],
    "sentences": [" cf.", "a. "],
    "facts": ["can you please "],
    "forgetting": ["-", "!", ": "],
    "capture": ["a(", "\nremember that a(", "= ", "://", "\nNOTE: "],
}


def seconds_for(read: Callable[[str], object], piece: str, length: int) -> float:
    """Return the processor time for a text that is a piece again and again, and ends otherwise."""
    text = (piece * (length // len(piece) + 1))[:length] + "\n!"
    started = time.process_time()
    read(text)
    return time.process_time() - started


@pytest.mark.parametrize("name", READERS)
def test_time_grows_no_faster_than_the_text(name: str) -> None:
    modules, read = READERS[name]
    patterns = dict.fromkeys(it for module in modules for it in patterns_of(module))
    assert patterns
    texts = [piece for pattern, flags in patterns for piece in pieces(pattern, flags)]
    for piece in dict.fromkeys([*FOUND_BY_HAND.get(name, []), *texts]):
        whole = seconds_for(read, piece, LENGTH)
        if whole < SECONDS or whole < seconds_for(read, piece, LENGTH // FACTOR) * QUICK_GROWTH:
            continue
        short = min(seconds_for(read, piece, LENGTH) for _ in range(2))
        long = min(seconds_for(read, piece, LENGTH * FACTOR) for _ in range(2))
        assert long < short * MOST_GROWTH, (piece, short, long)


def test_the_measure_can_fail() -> None:
    """A pattern that is quadratic is seen to be: what looked for a digit after ``sk-`` was."""
    import re

    read = re.compile(r"sk-(?=[\w-]*\d)[\w-]{20,}").findall
    short = min(seconds_for(read, "sk-", LENGTH // FACTOR) for _ in range(2))
    assert seconds_for(read, "sk-", LENGTH) > short * MOST_GROWTH


@pytest.mark.parametrize(
    ("read", "piece"),
    [*((find_secrets, piece) for piece in FOUND_BY_HAND["secrets"]), (lasts, "I don't ")],
)
def test_a_long_text_takes_as_much_longer_as_it_is_longer(
    read: Callable[[str], object], piece: str
) -> None:
    short = min(seconds_for(read, piece, 100_000) for _ in range(2))
    long = min(seconds_for(read, piece, 400_000) for _ in range(2))
    assert long < max(short * MOST_GROWTH, SECONDS), (short, long)
