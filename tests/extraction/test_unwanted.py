"""What a user asks not to store is not stored; an order about data is no such request."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_memory import AgentMemory

SECRET = "My brother is in rehab."


def stored(root: Path, *turns: str) -> tuple[set[str], list[str]]:
    """Return what a conversation leaves, and the problems; "a: …" is said by the assistant."""
    messages = [
        {"role": "assistant", "content": turn[3:]}
        if turn.startswith("a: ")
        else {"role": "user", "content": turn}
        for turn in turns
    ]
    with AgentMemory("bob", root=root, embedder=None) as memory:
        answer = memory.add(messages, user_id="u")
        return {kept.content for kept in memory.list_recent()}, answer.metadata.problems or []


@pytest.mark.parametrize(
    "turns",
    [
        ("Don't save this, but my brother is in rehab.",),
        ("dont store this: my brother is in rehab",),
        ("Do not remember this but I'm in rehab.",),
        ("I'm in rehab. It's hard. Please don't store it.",),
        (SECRET, "a: I see.", "Please don't remember that, it's private."),
        (SECRET, "a: I've noted that your brother is in rehab.", "Do not save that."),
        (SECRET, "Don't record any of this."),
        (SECRET, "Never store what I just said in your memory!"),
        ("Ich bin krank. Bitte nicht speichern.",),
        ("Speichere das nicht, aber ich bin krank.",),
        ("Je suis malade.", "a: Bon courage.", "S'il te plaît, n'enregistre pas ça."),
        ("Estoy enferma. No guardes esto, por favor.",),
        ("不要记住这个，我离婚了。",),
        ("離婚しました。これは保存しないでください。",),
    ],
)
def test_it_is_left_out_and_reported(root: Path, turns: tuple[str, ...]) -> None:
    left, problems = stored(root, *turns)
    assert left == set()
    assert any("asked not to store" in problem for problem in problems)


def test_what_stands_before_it_and_follows_later_is_kept(root: Path) -> None:
    left, _ = stored(
        root, "I like jazz. Don't save this, but I'm ill.", "a: Get well.", "I like tea."
    )
    assert left == {"I like jazz.", "I like tea."}


@pytest.mark.parametrize(
    "order",
    [
        "Don't store it, stream it.",
        "Do not record it.",
        "My code fails, but don't save it.",
        "Never log this token.",
        "Never log this.",
        "Don't save this file.",
        "Don't keep this open.",
        "Never store it in plain text.",
        "Don't log that, use metrics.",
        "Do not store this below 5 degrees.",
        "Don't write that, write this: x = 1.",
        "Don't remember it as a bug.",
        "Never log it twice.",
        "Don't save this, it fails.",
        "Nicht speichern vor dem Commit.",
        "Ne note pas ça dans le README.",
        "No guardes esto en la nevera.",
        "不要保存到磁盘。",
        "ログは保存しないでください。",
        "Translate to French:\nDon't save this.",
    ],
)
def test_an_order_about_data_is_none(root: Path, order: str) -> None:
    left, problems = stored(root, "I like jazz.", "a: Nice.", order)
    assert "I like jazz." in left
    assert not any("asked not to store" in problem for problem in problems)


def test_what_was_added_by_an_earlier_call_stays(root: Path) -> None:
    stored(root, SECRET)
    assert stored(root, "Please don't store that.")[0] == {SECRET}


def test_another_speaker_keeps_what_they_said(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        said = [("Ann", SECRET), ("Ben", "I like tea."), ("Ann", "Please don't store that.")]
        memory.add([{"role": "user", "name": name, "content": text} for name, text in said])
        assert {kept.content for kept in memory.list_recent()} == {"Ben: I like tea."}
