"""What a crowd has in common: memories that all change, and texts that tell what is whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from agent_memory import Memory

COUNTER: Final = "shared-counter"
FIELDS: Final = "shared-fields"
DUSTY: Final = "dusty"
"""Prefix of the memories that a tidying archives. No search asks for their words."""
SUBJECTS: Final = "harbour lantern violet granite orchard compass thimble walnut".split()
VALUES: Final[dict[str, Callable[[int], Any]]] = {
    "content": lambda n: f"The shared memory, for the {n}th time",
    "category": lambda n: ("note", "task", "insight", "pattern")[n % 4],
    "tags": lambda n: [f"shared-{n}"],
    "kind": lambda n: ("learning", "core", "task")[n % 3],
    "importance": lambda n: ("medium", "high", "low")[n % 3],
    "memory_type": lambda n: ("STANDARD", "PROCEDURAL", "GRAPH")[n % 3],
    "metadata": lambda n: {"number": n},
    "user_id": lambda n: f"user-{n}",
}
"""What the processes make of the fields of the shared memory, a field each."""
SETTINGS: Final[dict[str, Callable[[int], Any]]] = {
    "migration_threshold": lambda n: 1_000_000 + n,
    "scratchpad_max_size": lambda n: 50 + n % 50,
    "backups_kept": lambda n: 1 + n % 3,
}


class Broken(AssertionError):
    """Something was read that must not be."""


def text_of(name: str, revision: int, rng: random.Random) -> str:
    """Return a text that says by itself whether it is whole."""
    one, other = rng.sample(SUBJECTS, 2)
    text = f"The {one} of {name} at revision r{revision} is by the {other}, {word_of(name)}"
    if rng.random() < 0.05:
        text += ", as was said" * rng.randint(10, 500)
    return f"{text} #{crc32(text.encode())}"


def word_of(name: str) -> str:
    """Return a word that only the text of this memory has."""
    return "q" + name.replace("-", "x")


def refuse_half(memory: Memory) -> None:
    """Raise when a memory of anyone is not whole, or its text and its tags are of two changes."""
    if memory.id.startswith(("shared", DUSTY)):
        return
    text, _, check = memory.content.rpartition(" #")
    if check != str(crc32(text.encode())) or f" of {memory.id} " not in text:
        raise Broken(f"{memory.id} is not whole: {memory.content!r:.200}")
    if memory.tags != [text.partition(" at revision ")[2].split()[0]]:
        raise Broken(f"{memory.id} has the tags {memory.tags} with {memory.content!r:.200}")
