"""What a user asks not to store: left out if it is surely that, else stored, and reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory


def stored(root: Path, *turns: str) -> tuple[set[str], str]:
    """Return what a conversation leaves, and the problems; "a: …" is said by the assistant."""
    messages = [
        {"role": "assistant", "content": turn[3:]}
        if turn.startswith("a: ")
        else {"role": "user", "content": turn}
        for turn in turns
    ]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        answer = memory.add(messages, user_id="u")
        kept = {each.content for each in memory.list_recent()}
        return kept, "".join(answer.metadata.problems or [])


@pytest.mark.parametrize(
    "aside",
    [
        "Don't save this, but my brother is in rehab.",
        "please do not remember that but I'm in rehab.",
        "Dont note this, but my wife has left.",
        "Speichere das bitte nicht, aber ich bin krank.",
        "Ne note pas ça, mais je suis malade.",
        "No guardes esto, pero estoy enferma.",
    ],
)
def test_what_follows_but_in_the_same_sentence_is_left_out_alone(root: Path, aside: str) -> None:
    turns = ("I play jazz.", "a: How are you?", f"I drink tea. {aside} I eat figs.", "I own a cat.")
    kept, problems = stored(root, *turns)
    assert kept == {"I play jazz.", "I drink tea. I eat figs.", "I own a cat."}
    assert "a sentence was left out" in problems


@pytest.mark.parametrize(
    "request_",
    [
        "Please don't remember that.",
        "do not save this!",
        "Dont store that, please.",
        "Speicher das nicht, bitte.",
        "Bitte merk dir das nicht.",
        "S'il te plaît, n'enregistre pas ça.",
        "No guardes eso, por favor.",
    ],
)
def test_the_request_alone_is_not_stored_but_all_else_is(root: Path, request_: str) -> None:
    turns = ("I play jazz.", "a: Nice.", f"I drink tea. {request_} I eat figs.", request_)
    kept, problems = stored(root, *turns)
    assert kept == {"I play jazz.", "I drink tea. I eat figs."}
    assert problems.count("delete or erase removes it") == 1


@pytest.mark.parametrize(
    "turns",
    [
        ("Don't store it.",),
        ("Please don't remember it, I am 34.",),
        ("Don't save that, my address is Oak Street 5.",),
        ("Don't save this file.",),
        ("Don't save this: my code is 5.",),
        ("Never store this.",),
        ("Please don't log that.",),
        ("Don't save this, but the parser fails.",),
        ("Don't store this, but we keep the logs in S3.",),
        ("Don't keep this open, but I use it.",),
        ("My code fails, but don't save this.",),
        ("a: I'll save Oak Street 6.", "Don't save that, but my address is Oak Street 5."),
        ("a: Shall I keep a copy?", "Don't keep that."),
        ("a: Let me know if I should post it.", "Do not store that."),
        ("Speicher das nicht vor dem Commit.",),
        ("No guardes esto en la nevera.",),
        ("Translate to French:\nDon't save this, but I'm ill.",),
        ("> Don't save this.\nI use Vim.",),
    ],
)
def test_any_other_order_is_none(root: Path, turns: tuple[str, ...]) -> None:
    assert "store" not in stored(root, *turns)[1]


def test_what_corrects_an_address_is_kept(root: Path) -> None:
    kept, _ = stored(root, "a: I saved it.", "Don't save that, but my address is Oak Street 5.")
    assert any("Oak Street 5" in each for each in kept)
