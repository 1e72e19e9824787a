"""Messages of a conversation (C, 3): who said what, in text and images, and when."""

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

from agent_memory.models.fields import Label, Metadata, Text, clean_text
from agent_memory.models.record import SparseRecord
from agent_memory.models.times import UtcDatetime

_DATA_URL_SHOWN = 40
"""Characters. What is in a ``data:`` address is the image itself."""


class MessageRole(StrEnum):
    """Who says a message (C)."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class ImageURL(SparseRecord):
    """Where an image is: a web address, or the image itself as a ``data:`` address.

    ``detail`` is how closely a model should look at it.
    """

    url: Annotated[str, Field(min_length=1), AfterValidator(clean_text)]
    detail: Literal["low", "high", "auto"] | None = None


def _read_type(value: object) -> object:
    """Take OpenAI's word for an image block."""
    return "image" if value == "image_url" else value


class ContentBlock(SparseRecord):
    """A part of a message: a text, or an image. Each has its own field, and not the other's."""

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
        """What the block says as text; an image is ``[image: ADDRESS]``."""
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
        custom_error_message="give a text, or a list of blocks of type text or image",
    ),
]


class Message(SparseRecord):
    """One message of a conversation (C, 3).

    ``content`` is a text, or blocks of text and images. ``name`` is the speaker's, ``timestamp``
    when it was said. Fields that C does not have, such as a provider's own, are not kept.
    """

    role: MessageRole
    content: _Content
    name: Label | None = None
    timestamp: UtcDatetime | None = None
    metadata: Metadata | None = None

    @property
    def text(self) -> str:
        """What is said: the text, or what the blocks say, a line each."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.shown for block in self.content)
