"""Messages (C, 3), observations (A), and the facts and operations derived from them (C, 4, 5)."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from agent_memory.models.enums import ObservationType
from agent_memory.models.field_types import (
    Content,
    Label,
    MemoryId,
    Metadata,
    Tags,
    Text,
    UtcDatetime,
)
from agent_memory.models.fields import clean_content, clean_text
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record, SparseRecord
from agent_memory.models.times import now_utc

_DATA_URL_SHOWN = 40
"""Characters. The rest of a ``data:`` URL is the image itself."""


class MessageRole(StrEnum):
    """The role of a message's author."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class ImageURL(SparseRecord):
    """The location of an image: a web address, or the image itself as a ``data:`` URL.

    ``detail`` is how closely a model should look at it.
    """

    url: Annotated[str, Field(min_length=1), AfterValidator(clean_text)]
    detail: Literal["low", "high", "auto"] | None = None


def _read_type(value: object) -> object:
    """Accept OpenAI's name for an image block."""
    return "image" if value == "image_url" else value


class ContentBlock(SparseRecord):
    """A part of a message: a text or an image, in the field of its type; the other is empty."""

    type: Annotated[Literal["text", "image"], BeforeValidator(_read_type)]
    text: Text | None = None
    image_url: ImageURL | None = None

    @model_validator(mode="after")
    def _has_its_own_field(self) -> "ContentBlock":
        wanted, other = ("text", "image_url") if self.type == "text" else ("image_url", "text")
        if getattr(self, wanted) is None:
            raise ValueError(f"a block of type {self.type} needs {wanted!r}")
        if getattr(self, other) is not None:
            raise ValueError(f"a block of type {self.type} has no {other!r}: use two blocks")
        return self

    @property
    def shown(self) -> str:
        """The block as text; an image is ``[image: ADDRESS]``."""
        if self.image_url is None:
            return self.text or ""
        url = self.image_url.url
        if url.lower().startswith("data:"):
            url = url.partition(",")[0][:_DATA_URL_SHOWN]
        return f"[image: {url}]"


def _form_of(content: object) -> str | None:
    if isinstance(content, str):
        return "text"
    return "blocks" if isinstance(content, list | tuple) else None


_Content = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[ContentBlock], Tag("blocks")],
    Discriminator(
        _form_of,
        custom_error_type="content",
        custom_error_message="give a string, or a list of blocks of type text or image",
    ),
]


class Message(SparseRecord):
    """One message of a conversation.

    ``content`` is a text, or blocks of text and images. ``name`` is the speaker's, ``timestamp``
    when it was said. Other fields, such as a provider's own, are dropped.
    """

    role: MessageRole
    content: _Content
    name: Label | None = None
    timestamp: UtcDatetime | None = None
    metadata: Metadata | None = None

    @property
    def text(self) -> str:
        """The text, or the blocks as text, one per line."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.shown for block in self.content)


class ExtractionMetadata(SparseRecord, protected_namespaces=()):
    """How facts were extracted.

    ``model_used`` is the language model's name; ``rules`` if there was none, ``raw`` if its answers
    could not be used. ``confidence_score`` is the mean over the facts, 0 to 1.
    ``language_detected`` is a code such as ``en``.
    """

    model_used: Text
    extraction_time: UtcDatetime
    confidence_score: float = Field(ge=0.0, le=1.0)
    language_detected: Text | None = None
    custom_prompt_used: bool


class ExtractedFacts(SparseRecord):
    """The facts of a conversation, each a text that can be understood on its own."""

    facts: list[Text]
    extraction_metadata: ExtractionMetadata


class OperationEvent(StrEnum):
    """What to do with a fact: add a memory, update or delete one, or nothing."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


class MemoryOperation(SparseRecord):
    """One operation on a memory.

    ``id`` is the memory's, required by UPDATE and DELETE. ``text`` is what the memory says after an
    ADD or UPDATE, and before a DELETE; ``old_memory`` is what it said before an UPDATE.
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


class ProcessingMetadata(SparseRecord, protected_namespaces=()):
    """How the operations were decided.

    ``model_used`` is as in ``ExtractionMetadata``. ``uuid_mapping_used`` means that the model saw
    small numbers in place of ids, so that no invented id can affect a memory.
    """

    total_operations: int = Field(ge=0)
    decision_time: UtcDatetime
    model_used: Text
    uuid_mapping_used: bool


class MemoryOperations(SparseRecord):
    """All operations for a conversation."""

    memory: list[MemoryOperation]
    processing_metadata: ProcessingMetadata


class Observation(Record, frozen=True):
    """A raw observation: its text, what it is about, and the confidence of the capture (0 to 1)."""

    content: Content
    observation_type: ObservationType
    source: str = Field(description="Where it was seen: a tool, a turn")
    keywords: Tags = Field(default_factory=list)
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    session_id: Label
    timestamp: UtcDatetime = Field(default_factory=now_utc)

    def to_memory(self, agent_id: str) -> Memory:
        """Return the memory for an agent that this becomes, marked as captured."""
        return Memory(
            agent_id=agent_id,
            content=self.content,
            category=self.observation_type.value,
            tags=self.keywords,
            created_by_session=self.session_id,
            timestamp=self.timestamp,
            metadata={
                "source": self.source,
                "confidence": self.confidence,
                "auto_captured": True,
            },
        )
