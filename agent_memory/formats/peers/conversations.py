"""What the readers of other programs' conversations have in common.

A conversation is imported as facts, for which the library asks for ``contents``, or message by
message, as ``read`` yields them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agent_memory.formats.peers.entries import label, memories
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, PassedOver, Section, content_id


class Spoken(NamedTuple):
    """A message: who said it (``user`` or ``assistant``), what, when, and its own id."""

    role: str
    text: str
    timestamp: str | None
    key: str


class Conversation(NamedTuple):
    """What was said in one session, in order, and what is known about it."""

    place: str
    name: str
    messages: list[Spoken]
    metadata: dict[str, Any]
    """What each memory of it is to tell: the title, the project."""

    @property
    def began_at(self) -> str:
        """The time of the first message; an empty text if there is none."""
        return min((each.timestamp for each in self.messages if each.timestamp), default="")


Content = Entry | PassedOver | Conversation


@dataclass(slots=True)
class Conversations:
    """The format of a program that keeps conversations.

    A faulty entry is left out and reported: nobody can correct an export of 500 MB by hand.
    """

    name: str
    recognises: Callable[[Sample], bool]
    contents: Callable[[Path], Iterator[Content]]
    """Yield the conversations, and what was remembered of them all."""
    skips_bad: bool = True

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield each message as a memory, with the conversation as its session."""
        for item in self.contents(path):
            if isinstance(item, Conversation):
                yield from self._verbatim(item)
            else:
                yield item

    def _verbatim(self, talk: Conversation) -> Iterator[Entry | PassedOver]:
        session = label(talk.name)
        for message in talk.messages:
            about = {**talk.metadata, "role": message.role}
            entries = memories(
                talk.place,
                message.text,
                source=self.name,
                timestamp=message.timestamp,
                metadata=about,
                created_by_session=session,
            )
            yield from with_ids(entries, talk.name, message.key)


def with_ids(entries: Iterable[Entry | PassedOver], *keys: str) -> Iterator[Entry | PassedOver]:
    """Give memories ids derived from what they say and where it was said.

    "Thanks" may be in many conversations, without a time: one id would stand for many memories.
    """
    for entry in entries:
        if isinstance(entry, Entry) and entry.section is Section.MEMORY and entry.error is None:
            moment = entry.fields.get("timestamp")
            entry.fields["id"] = content_id(entry.fields["content"], moment, None, "/".join(keys))
        yield entry
