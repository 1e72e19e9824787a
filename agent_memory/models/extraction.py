"""What a conversation says that should be kept, and what is to be done about it (C, 4 and 5)."""

from enum import StrEnum

from pydantic import ConfigDict, Field, model_validator

from agent_memory.models.fields import MemoryId, Metadata, Text, clean_content
from agent_memory.models.record import SparseRecord
from agent_memory.models.times import UtcDatetime


class ExtractionMetadata(SparseRecord):
    """How facts were extracted (C, 4).

    ``model_used`` is the language model's name; ``rules`` where there was none, ``raw`` where its
    answers could not be used. ``confidence_score`` is the mean of the facts', 0 to 1.
    ``language_detected`` is a code such as ``en``.
    """

    model_config = ConfigDict(protected_namespaces=())

    model_used: Text
    extraction_time: UtcDatetime
    confidence_score: float = Field(ge=0.0, le=1.0)
    language_detected: Text | None = None
    custom_prompt_used: bool


class ExtractedFacts(SparseRecord):
    """The facts of a conversation, each a text that can be understood alone (C, 4)."""

    facts: list[Text]
    extraction_metadata: ExtractionMetadata


class OperationEvent(StrEnum):
    """What is done with a fact: a new memory, a changed one, one taken away, or nothing (C)."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


class MemoryOperation(SparseRecord):
    """One thing to be done (C, 5).

    ``id`` is the memory's, which UPDATE and DELETE need. ``text`` is what the memory says after an
    ADD or UPDATE, and before a DELETE. ``old_memory`` is what it said before an UPDATE.
    ``confidence`` is 0 to 1.
    """

    id: MemoryId | None = None
    event: OperationEvent
    text: Text
    old_memory: Text | None = None
    metadata: Metadata | None = None
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    reasoning: Text | None = None

    @model_validator(mode="after")
    def _can_be_done(self) -> "MemoryOperation":
        if self.event in (OperationEvent.UPDATE, OperationEvent.DELETE) and self.id is None:
            raise ValueError(f"{self.event} needs the id of a memory")
        if self.event in (OperationEvent.ADD, OperationEvent.UPDATE):
            clean_content(self.text)
        return self


class ProcessingMetadata(SparseRecord):
    """How it was decided (C, 5).

    ``model_used`` is as in ``ExtractionMetadata``. ``uuid_mapping_used`` tells that the model saw
    small numbers in place of ids, so that no invented id can touch a memory.
    """

    model_config = ConfigDict(protected_namespaces=())

    total_operations: int = Field(ge=0)
    decision_time: UtcDatetime
    model_used: Text
    uuid_mapping_used: bool


class MemoryOperations(SparseRecord):
    """All that is to be done about a conversation (C, 5)."""

    memory: list[MemoryOperation]
    processing_metadata: ProcessingMetadata
