"""What passes through the pipeline: facts, the memories related to them, operations."""

from __future__ import annotations

from collections.abc import Mapping
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
"""Who said it: a language model, rules, or nobody: what was given is taken as it is."""


class Fact(NamedTuple):
    """Something that a conversation says and that may be worth keeping.

    ``text`` can be a memory's content. ``sources`` are the places (from 0) of the messages that say
    it, ``confidence`` is 0 to 1, ``subject`` is whom it is about where that is known, ``category``
    that of its memory, where the caller gives none.
    """

    text: str
    sources: tuple[int, ...] = ()
    confidence: float = 1.0
    subject: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts of a conversation, in its order, and how they were had.

    ``problems`` say, a sentence each, what went wrong on the way; no fact is missing for it. ``by``
    is ``raw`` where no answer of the model could be used. ``has_failed`` tells that the model's
    provider failed: asking it anything else is no use.
    """

    facts: list[Fact]
    metadata: ExtractionMetadata
    problems: list[str] = field(default_factory=list)
    by: By = "rules"
    has_failed: bool = False

    def to_model(self) -> ExtractedFacts:
        """Return it as C writes it."""
        texts = [fact.text for fact in self.facts]
        return ExtractedFacts(facts=texts, extraction_metadata=self.metadata)


class RelatedMemory(NamedTuple):
    """A memory that may have to do with a fact: its id, what it says, when it was learned."""

    id: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """The operations on memories that some facts call for.

    ``operations`` have the memories' own ids; each id is touched once at most. An ADD has none.
    ``covers`` tells for each operation the places (from 0) of the facts that it is about; every
    fact is among them. ``problems`` say what was refused or put right, a sentence each. ``by`` is
    ``raw`` where no answer of the model could be used, and all facts are added. ``in_question`` has
    the places of the operations about which somebody is to be asked, however sure they are.
    ``new_ids`` has, by the places of facts, the ids that their memories are to have: an operation
    may be about what an earlier fact of the same conversation says.
    """

    operations: list[MemoryOperation]
    covers: list[tuple[int, ...]]
    metadata: ProcessingMetadata
    problems: list[str] = field(default_factory=list)
    by: By = "rules"
    has_failed: bool = False
    in_question: frozenset[int] = frozenset()
    new_ids: Mapping[int, str] = field(default_factory=dict)

    def to_model(self) -> MemoryOperations:
        """Return it as C writes it."""
        return MemoryOperations(memory=self.operations, processing_metadata=self.metadata)
