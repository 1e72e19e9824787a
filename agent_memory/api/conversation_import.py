"""Imports what is worth keeping from other programs' conversations, found by the rules of ``add``.

The import stays one transaction. Facts that can correct one another ("I moved to Rome") are added,
in the order in which the conversations took place, to a private temporary store. What that store
knows, and what it would ask, is imported in the end, together with all other facts. (Adding every
fact directly would take a search and a commit each: more than five minutes for 10,000 messages.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Protocol, Self

from agent_memory.extraction.rules.facts import facts_by_rules
from agent_memory.extraction.rules.statements import statement
from agent_memory.formats.peers.conversations import Conversation, Conversations, Spoken, with_ids
from agent_memory.formats.peers.entries import kept, label, memories
from agent_memory.formats.protocol import Source
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.models.fields import to_json
from agent_memory.models.portable import Entry, PassedOver, Section
from agent_memory.runtime.temporary_files import temporary_file
from agent_memory.storage.opening import file_storage
from agent_memory.text.speech_acts import is_request_to_forget

_AGAIN: Final = PassedOver("facts already stated before")
_FIELDS: Final = {"content", "category", "tags", "timestamp", "created_by_session", "metadata"}
_UNNAMED: Final = "conversation"
_NO_TIME: Final = "1970-01-01T00:00:00.000000Z"
"""Stands for a time that the file does not say: that of the import would make another id of it."""


class LearningMemory(Protocol):
    """What is needed of the memory to which conversations are added."""

    session_id: str

    def __enter__(self) -> Self:
        """Use it."""

    def __exit__(self, *_: object) -> None:
        """Close it."""

    def configure(self, **settings: Any) -> object:  # noqa: ANN401
        """Change settings."""

    def add(self, messages: Any, *, metadata: dict[str, Any]) -> object:  # noqa: ANN401
        """Learn from a conversation."""

    def dump(self) -> AbstractContextManager[Source]:
        """Give the body everything that the memory holds."""


def facts_of(
    reader: Conversations, path: Path, opened: Callable[[Path], LearningMemory]
) -> Iterator[Entry | PassedOver]:
    """Yield the lasting facts in a file's conversations, and everything else the file holds.

    ``opened`` opens a memory at a path.
    """
    with _Aside() as talks, file_storage().private_folder() as folder:
        for item in reader.contents(path):
            if isinstance(item, Conversation):
                talks.put(item)
            else:
                yield item
        known: set[bytes] = set()
        with opened(folder / "memories.db") as memory:
            for talk in talks:
                yield from _learned(memory, talk, reader.name, known)
            with memory.dump() as source:
                yield from _kept_entries(source)
    yield PassedOver(
        "messages, of which only lasting facts are imported (--raw imports each message)",
        talks.messages,
    )


def _learned(
    memory: LearningMemory, talk: Conversation, source: str, known: set[bytes]
) -> Iterator[Entry | PassedOver]:
    """Yield the facts of a conversation, but those of the memory that others may correct."""
    memory.session_id = label(talk.name) or _UNNAMED
    messages = [
        Message(role=MessageRole(each.role), content=each.text, timestamp=each.timestamp)
        for each in talk.messages
    ]
    spoken_until = list(accumulate((each.timestamp or "" for each in talk.messages), max))
    for fact in facts_by_rules(messages):
        moment = max((talk.messages[place].timestamp or "" for place in fact.sources), default="")
        if statement(fact.text) or is_request_to_forget(fact.text):
            moment = moment or spoken_until[max(fact.sources)] or _NO_TIME
            stated = {"role": "user", "content": fact.text, "timestamp": moment}
            memory.add(stated, metadata={**kept(talk.metadata), "source": source})
            continue
        digest = hashlib.sha256(fact.text.casefold().encode()).digest()[:16]
        if digest in known:
            yield _AGAIN
            continue
        known.add(digest)
        entries = memories(
            talk.place,
            fact.text,
            source=source,
            timestamp=moment,
            metadata={**talk.metadata, "confidence": round(fact.confidence, 3)},
            created_by_session=memory.session_id,
            category=fact.category,
        )
        yield from with_ids(entries, memory.session_id)


def _kept_entries(source: Source) -> Iterator[Entry | PassedOver]:
    """Yield what a memory learned: under ids of what it says, and what it asks about."""
    ids: dict[str, str] = {}
    for entry in source.entries():
        if entry.section is Section.MEMORY:
            fields = {name: value for name, value in entry.fields.items() if name in _FIELDS}
            if fields.get("timestamp") == _NO_TIME:
                del fields["timestamp"]
            session = str(fields.get("created_by_session"))
            for taken in with_ids([entry._replace(fields=fields, place=session)], session):
                ids[entry.fields["id"]] = fields["id"]
                yield taken
        elif entry.section is Section.REVIEW:
            names = {name: ids.get(str(entry.fields.get(name))) for name in ("id", "replaced_by")}
            review = {**entry.fields, **{name: each for name, each in names.items() if each}}
            yield entry._replace(fields=review)


class _Aside:
    """Conversations, put aside in a file until the first of them is known."""

    def __init__(self) -> None:
        self.messages = 0
        self._file = temporary_file()
        self._places: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, talk: Conversation) -> None:
        """Put one aside."""
        self.messages += len(talk.messages)
        self._places.append((talk.began_at, self._file.tell()))
        self._file.write(to_json(talk).encode() + b"\n")

    def __iter__(self) -> Iterator[Conversation]:
        """Yield them as they were held, the oldest first."""
        for _, place in sorted(self._places):
            self._file.seek(place)
            talk = Conversation(*json.loads(self._file.readline()))
            yield talk._replace(messages=[Spoken(*each) for each in talk.messages])
