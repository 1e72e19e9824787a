"""The graph of what memories speak of: entities, relationships, and changes to them (C, 7 to 9).

``Entity``, ``Relationship`` and ``GraphUpdates`` are C's, in exactly its JSON. The others are what
the verbs of ``MemoryGraph`` return: they tell since when and until when something holds, too.
"""

import re
import unicodedata
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from agent_memory.models.field_types import Label, MemoryId, Text, UtcDatetime
from agent_memory.models.fields import clean_text
from agent_memory.models.record import Record, SparseRecord

USER_NAME: Final = "USER_ID"
"""The name of the user that a graph is of, as C writes it."""
USER_ALIASES: Final = ("user", "I", "me")
"""What C's example gives the user as aliases; ``entity`` and the other verbs know more."""
EXCLUSIVE: Final = frozenset({"lives_in", "works_at", "works_as", "is_married_to", "is_named"})
"""The relationships that an entity has to one other at a time: a new one closes the older one."""

_USER_KEYS: Final = frozenset({"user_id", "user", "the user", "i", "me", "myself"})
_PARTS: Final = re.compile(r"[\s_-]+")
_LONGEST_NAME: Final = 200
_LONGEST_RELATIONSHIP: Final = 100


def clean_name(name: str) -> str:
    """Return the name of an entity with single spaces, or raise ``ValueError``.

    It has 1 to 200 characters, none of which is a control character.
    """
    line = " ".join(clean_text(name).split())
    if not 0 < len(line) <= _LONGEST_NAME:
        raise ValueError(f"a name has 1 to {_LONGEST_NAME} characters, not {len(line):,}")
    if any(unicodedata.category(letter) == "Cc" for letter in line):
        raise ValueError(f"{line!r:.80} has a control character: remove it")
    return line


def clean_relationship(relationship: str) -> str:
    """Return a relationship as the file holds it, ``lives_in`` for "Lives in", or raise.

    It has 1 to 100 characters. Raises ``ValueError``.
    """
    word = _PARTS.sub("_", clean_name(relationship).lower()).strip("_")
    if not 0 < len(word) <= _LONGEST_RELATIONSHIP:
        raise ValueError(
            f"a relationship has 1 to {_LONGEST_RELATIONSHIP} characters, not {len(word):,}:"
            " use a verb such as lives_in"
        )
    return word


def name_key(name: str, user_id: str | None = None) -> str:
    """Return what names that mean the same have in common.

    Case, white space and forms of Unicode do not count; "I", "me" and "user" are the user, and so
    is the ``user_id`` itself.
    """
    key = " ".join(unicodedata.normalize("NFKC", name).lower().split())
    is_user = key in _USER_KEYS or (user_id is not None and key == user_id.lower())
    return USER_NAME.lower() if is_user else key


def _checked_name(name: str) -> str:
    clean_name(name)
    return name


def _checked_relationship(relationship: str) -> str:
    clean_relationship(relationship)
    return relationship


Name = Annotated[str, AfterValidator(_checked_name)]
"""The name of an entity, as it is written."""
Verb = Annotated[str, AfterValidator(_checked_relationship)]
"""A relationship, as it is written."""
Confidence = Annotated[float, Field(ge=0.0, le=1.0)]


# C's documents ------------------------------------------------------------------------------------


class _Metadata(SparseRecord):
    """Whose something is, and how sure it is."""

    user_id: Label
    agent_id: Label | None = None
    run_id: Label | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    confidence: Confidence


class EntityMetadata(_Metadata):
    """Whose an entity is, how sure it is, and which memories speak of it."""

    source_memory_ids: list[MemoryId]


class Entity(SparseRecord):
    """Somebody or something that memories speak of."""

    id: MemoryId
    name: Name
    type: Text | None = None
    aliases: list[Name] | None = None
    metadata: EntityMetadata


class RelationshipMetadata(_Metadata):
    """Whose a relationship is, how sure it is, and which memory says so."""

    source_memory_id: MemoryId | None = None
    temporal_context: Text | None = None


class Relationship(SparseRecord):
    """What holds between two entities, which are given by their names."""

    id: MemoryId
    source: Name
    relationship: Verb
    target: Name
    metadata: RelationshipMetadata


class GraphAction(StrEnum):
    """What is done with a relationship."""

    UPDATE = "UPDATE"
    ADD = "ADD"
    DELETE = "DELETE"


class GraphUpdate(SparseRecord):
    """One change of the graph.

    An UPDATE closes the relationship ``old_relationship`` of the two and opens ``relationship``.
    Without ``old_relationship`` it is the target that changes: the one relationship of that name
    which the source has is closed.
    """

    action: GraphAction
    source: Name
    target: Name
    relationship: Verb
    old_relationship: Verb | None = None
    confidence: Confidence | None = None
    reasoning: Text | None = None


class GraphUpdatesMetadata(SparseRecord, protected_namespaces=()):
    """When changes of the graph were decided, and by what."""

    processing_time: UtcDatetime
    model_used: Text
    total_updates: Annotated[int, Field(ge=0)]


class GraphUpdates(SparseRecord):
    """Changes of the graph, in their order."""

    updates: list[GraphUpdate]
    metadata: GraphUpdatesMetadata | None = None


# What the verbs return ----------------------------------------------------------------------------


class EntityView(SparseRecord):
    """An entity of the graph, with the memories that speak of it and are there.

    ``user_id`` is whose graph it is in, ``None`` for the agent's own; ``agent_id`` whose file.
    """

    id: str
    name: str
    type: str | None = None
    aliases: list[str] = Field(default_factory=list)
    confidence: float = 1.0
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    source_memory_ids: list[str] = Field(default_factory=list)

    def record(self) -> Entity:
        """Return it as an ``Entity``. What is in no user's graph is told as the agent's."""
        return Entity.model_construct(
            id=self.id,
            name=self.name,
            type=self.type,
            aliases=self.aliases or None,
            metadata=EntityMetadata.model_construct(
                user_id=self.user_id or self.agent_id or "agent",
                agent_id=self.agent_id,
                run_id=self.run_id,
                created_at=self.created_at,
                updated_at=self.updated_at,
                confidence=self.confidence,
                source_memory_ids=self.source_memory_ids,
            ),
        )


class EdgeView(SparseRecord):
    """A relationship of the graph, with the time in which it holds.

    It holds from ``valid_from`` on, up to ``valid_to`` but not at that moment; without one it still
    does. ``source_memory_ids`` are the memories that say so and are there.
    """

    id: str
    source: str
    relationship: str
    target: str
    confidence: float = 1.0
    temporal_context: str | None = None
    valid_from: UtcDatetime
    valid_to: UtcDatetime | None = None
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    source_id: str
    target_id: str
    source_memory_ids: list[str] = Field(default_factory=list)

    def record(self) -> Relationship:
        """Return it as a ``Relationship``, with the first of its memories."""
        return Relationship.model_construct(
            id=self.id,
            source=self.source,
            relationship=self.relationship,
            target=self.target,
            metadata=RelationshipMetadata.model_construct(
                user_id=self.user_id or self.agent_id or "agent",
                agent_id=self.agent_id,
                run_id=self.run_id,
                created_at=self.created_at,
                updated_at=self.updated_at,
                confidence=self.confidence,
                source_memory_id=next(iter(self.source_memory_ids), None),
                temporal_context=self.temporal_context,
            ),
        )


class GraphExcerpt(SparseRecord):
    """What one memory says: the entities and the relationships that were read from it."""

    entities: list[EntityView] = Field(default_factory=list)
    relationships: list[EdgeView] = Field(default_factory=list)


class GraphChange(SparseRecord):
    """What became of one change of the graph.

    ``opened`` is the relationship that holds from now on, ``closed`` are those that do no more.
    ``note`` tells what was done otherwise than asked, and why; ``refused`` that nothing was done.
    """

    action: GraphAction
    source: str
    relationship: str
    target: str
    opened: str | None = None
    closed: list[str] = Field(default_factory=list)
    note: str | None = None
    refused: bool = False


class GraphReport(Record, frozen=True):
    """What became of changes of the graph, in their order."""

    changes: list[GraphChange]

    @property
    def refused(self) -> list[GraphChange]:
        """Return those of which nothing was done."""
        return [change for change in self.changes if change.refused]


class Neighbour(SparseRecord):
    """An entity near another one, and over how many relationships it is reached."""

    id: str
    name: str
    type: str | None = None
    distance: int


class Neighbourhood(Record, frozen=True):
    """What is near an entity: its neighbours, nearest first, and the relationships between.

    ``truncated`` tells that there are more than were looked at.
    """

    name: str
    neighbours: list[Neighbour]
    edges: list[EdgeView]
    truncated: bool = False


class GraphPath(Record, frozen=True):
    """A shortest way from one entity to another, whatever way its relationships point.

    ``names`` are the entities on it, from first to last. Where there is none, ``found`` is false,
    and ``truncated`` tells whether the search ended early: then there may be one.
    """

    names: list[str] = Field(default_factory=list)
    edges: list[EdgeView] = Field(default_factory=list)
    found: bool = False
    truncated: bool = False

    def __bool__(self) -> bool:
        """Return whether there is a way."""
        return self.found
