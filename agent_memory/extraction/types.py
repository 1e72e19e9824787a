"""The data of the pipeline: facts, the memories related to them, operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from agent_memory.models.conversation import (
    ExtractedFacts,
    ExtractionMetadata,
    MemoryOperation,
    MemoryOperations,
    ProcessingMetadata,
)

By = Literal["model", "rules", "raw"]
"""The source of a result: a language model, rules, or ``raw``: the input is taken as it is."""


ReplacedBy = Callable[[str], Mapping[str, str]]
"""Returns, by the id of a memory, the texts that were deleted or shortened for its sake.

A review of them was approved. Each text comes with the id of the memory that had it.
"""


class Fact(NamedTuple):
    """Something that a conversation says and that may be worth keeping.

    ``text`` can be a memory's content. ``sources`` are the positions (from 0) of the messages that
    say it, ``confidence`` is 0 to 1, ``subject`` is whom it is about, if known, ``category`` is
    that of its memory, unless the caller sets one. ``is_beside`` is whether users say more than
    values in the conversation, so that it may not be meant: "You are my doctor.", "Just kidding."
    """

    text: str
    sources: tuple[int, ...] = ()
    confidence: float = 1.0
    subject: str | None = None
    category: str | None = None
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts of a conversation, in its order, and how they were extracted.

    ``problems`` lists what went wrong, a sentence each; no fact is missing because of it. ``by`` is
    ``raw`` if no answer of the model was usable. ``has_failed`` is whether the model's provider
    failed: then asking it anything else is useless.
    """

    facts: list[Fact]
    metadata: ExtractionMetadata
    problems: list[str] = field(default_factory=list)
    by: By = "rules"
    has_failed: bool = False

    def to_model(self) -> ExtractedFacts:
        """Return it in C's format."""
        texts = [fact.text for fact in self.facts]
        return ExtractedFacts(facts=texts, extraction_metadata=self.metadata)


class RelatedMemory(NamedTuple):
    """A memory that may be related to a fact: its id, what it says, when it was learned.

    ``correction`` is the newest memory that may replace it, if that was said before the fact: then
    a fact that says the same as the memory is news.
    """

    id: str
    text: str
    at: datetime | None = None
    correction: RelatedMemory | None = None


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """The operations on memories that some facts require.

    ``operations`` have the memories' own ids; each id is touched at most once. An ADD has none.
    ``covers`` has for each operation the positions (from 0) of the facts that it is about; every
    fact is among them. ``problems`` lists what was refused or corrected, a sentence each. ``by`` is
    ``raw`` if no answer of the model was usable, and all facts are added. ``in_question`` has the
    positions of the operations to be reviewed, whatever their confidence. ``new_ids`` has, by the
    positions of facts, the ids that their memories will get: an operation may be about what an
    earlier fact of the same conversation says. ``said_again`` has the positions of the facts that
    become memories of their own although an older memory says the same.
    """

    operations: list[MemoryOperation]
    covers: list[tuple[int, ...]]
    metadata: ProcessingMetadata
    problems: list[str] = field(default_factory=list)
    by: By = "rules"
    has_failed: bool = False
    in_question: frozenset[int] = frozenset()
    new_ids: Mapping[int, str] = field(default_factory=dict)
    said_again: frozenset[int] = frozenset()

    def to_model(self) -> MemoryOperations:
        """Return it in C's format."""
        return MemoryOperations(memory=self.operations, processing_metadata=self.metadata)
