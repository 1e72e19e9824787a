"""The graph of entities in memories: relationships between them, and changes (C, 7 to 9).

``Entity``, ``Relationship`` and ``GraphUpdates`` are C's, in exactly its JSON. The others are what
the verbs of ``MemoryGraph`` return, and include the period in which a relationship holds.
"""

import re
import unicodedata
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field

from agent_memory.models.field_types import Label, MemoryId, Text, UtcDatetime
from agent_memory.models.fields import clean_text
from agent_memory.models.record import Record, SparseRecord

USER_NAME: Final = "USER_ID"
"""The name of the user to whom a graph belongs, as C writes it."""
USER_ALIASES: Final = ("user", "I", "me")
"""The user's aliases in C's example; ``entity`` and the other verbs know more."""
EXCLUSIVE: Final = frozenset({"lives_in", "works_at", "works_as", "is_married_to", "is_named"})
"""The relationships that an entity has to only one other at a time: a new one closes the old.

If a conversation states it, only one whose memory it contradicts: one may have two jobs."""

_USER_KEYS: Final = frozenset({"user_id", "user", "the user", "i", "me", "myself"})
_PARTS: Final = re.compile(r"[\s_-]+")
_LONGEST_NAME: Final = 200
_LONGEST_RELATIONSHIP: Final = 100


def clean_name(name: str) -> str:
    """Return the name of an entity with single spaces, or raise ``ValueError``.

    It has 1 to 200 characters, and no control characters.
    """
    line = " ".join(clean_text(name).split())
    if not 0 < len(line) <= _LONGEST_NAME:
        raise ValueError(f"a name must have 1 to {_LONGEST_NAME} characters, not {len(line):,}")
    if any(unicodedata.category(letter) == "Cc" for letter in line):
        raise ValueError(f"{line!r:.80} has a control character: remove it")
    return line


def clean_relationship(relationship: str) -> str:
    """Return a relationship in its stored form, such as ``lives_in`` for "Lives in".

    It has 1 to 100 characters. Raises ``ValueError``.
    """
    word = _PARTS.sub("_", clean_name(relationship).lower()).strip("_")
    if not 0 < len(word) <= _LONGEST_RELATIONSHIP:
        raise ValueError(
            f"a relationship must have 1 to {_LONGEST_RELATIONSHIP} characters, not"
            f" {len(word):,}: use a verb such as lives_in"
        )
    return word


def name_key(name: str, user_id: str | None = None) -> str:
    """Return a key that is the same for all names with the same meaning.

    Case, white space and Unicode forms are ignored; "I", "me" and "user" are the user, and so is
    the ``user_id`` itself.
    """
    key = " ".join(unicodedata.normalize("NFKC", name).lower().split())
    is_user = key in _USER_KEYS or (user_id is not None and key == user_id.lower())
    return USER_NAME.lower() if is_user else key


def display_name(name: str, user_id: str | None) -> str:
    """Return a name as people read it: ``USER_NAME`` in a user's graph is the user's id."""
    return name if name != USER_NAME else user_id or USER_ALIASES[0]


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
    """The owner and the confidence of an entity or a relationship."""

    user_id: Label
    agent_id: Label | None = None
    run_id: Label | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    confidence: Confidence


class EntityMetadata(_Metadata):
    """The owner and the confidence of an entity, and the memories that mention it."""

    source_memory_ids: list[MemoryId]


class Entity(SparseRecord):
    """A person or thing that memories mention."""

    id: MemoryId
    name: Name
    type: Text | None = None
    aliases: list[Name] | None = None
    metadata: EntityMetadata


class RelationshipMetadata(_Metadata):
    """The owner and the confidence of a relationship, and the memory that states it."""

    source_memory_id: MemoryId | None = None
    temporal_context: Text | None = None


class Relationship(SparseRecord):
    """A relationship between two entities, which are given by name."""

    id: MemoryId
    source: Name
    relationship: Verb
    target: Name
    metadata: RelationshipMetadata


class GraphAction(StrEnum):
    """What to do with a relationship."""

    UPDATE = "UPDATE"
    ADD = "ADD"
    DELETE = "DELETE"


class GraphUpdate(SparseRecord):
    """One change of the graph.

    An UPDATE closes the relationship ``old_relationship`` between the two and opens
    ``relationship``. Without ``old_relationship`` it changes the target: the one relationship of
    that name that the source has is closed.
    """

    action: GraphAction
    source: Name
    target: Name
    relationship: Verb
    old_relationship: Verb | None = None
    confidence: Confidence | None = None
    reasoning: Text | None = None


class GraphUpdatesMetadata(SparseRecord, protected_namespaces=()):
    """When the changes of the graph were decided, and by which model."""

    processing_time: UtcDatetime
    model_used: Text
    total_updates: Annotated[int, Field(ge=0)]


class GraphUpdates(SparseRecord):
    """Changes of the graph, in order."""

    updates: list[GraphUpdate]
    metadata: GraphUpdatesMetadata | None = None


# What the verbs return ----------------------------------------------------------------------------


class EntityView(SparseRecord):
    """An entity of the graph, with the existing memories that mention it.

    ``user_id`` is the user whose graph it is in, ``None`` for the agent's own; ``agent_id`` is the
    agent whose file it is in.
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

    def for_display(self) -> Self:
        """Return it with the names that people read: a user's id, not ``USER_ID``."""
        name = display_name(self.name, self.user_id)
        aliases = [alias for alias in self.aliases if alias != name]
        return self.model_copy(update={"name": name, "aliases": aliases})

    def record(self) -> Entity:
        """Return it as an ``Entity``. An entity of no user's graph is given to the agent."""
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
    """A relationship of the graph, with the period in which it holds.

    It holds from ``valid_from`` (inclusive) to ``valid_to`` (exclusive), or until now if that is
    ``None``. ``source_memory_ids`` are the existing memories that state it.
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

    def for_display(self) -> Self:
        """Return it with the names that people read: a user's id, not ``USER_ID``."""
        ends = {"source": self.source, "target": self.target}
        names = {end: display_name(name, self.user_id) for end, name in ends.items()}
        return self.model_copy(update=names)

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
    """The entities and relationships that were extracted from one memory."""

    entities: list[EntityView] = Field(default_factory=list)
    relationships: list[EdgeView] = Field(default_factory=list)

    def for_display(self) -> Self:
        """Return it with the names that people read: a user's id, not ``USER_ID``."""
        entities = [entity.for_display() for entity in self.entities]
        edges = [edge.for_display() for edge in self.relationships]
        return self.model_copy(update={"entities": entities, "relationships": edges})


class GraphChange(SparseRecord):
    """The outcome of one change of the graph.

    ``opened`` is the relationship that holds from now on, ``closed`` are those that no longer do.
    ``note`` says what was done differently than asked, and why; ``refused`` means that nothing was
    done.
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
    """The outcomes of changes of the graph, in order."""

    changes: list[GraphChange]

    @property
    def refused(self) -> list[GraphChange]:
        """Return the changes that were not applied."""
        return [change for change in self.changes if change.refused]


class Neighbour(SparseRecord):
    """An entity near another one; ``distance`` is the number of relationships between them."""

    id: str
    name: str
    type: str | None = None
    distance: int


class Neighbourhood(Record, frozen=True):
    """The surroundings of an entity: its neighbours, nearest first, and their relationships.

    ``truncated`` means that there are more than were considered.
    """

    name: str
    neighbours: list[Neighbour]
    edges: list[EdgeView]
    truncated: bool = False

    def for_display(self) -> Self:
        """Return it with the names that people read: a user's id, not ``USER_ID``."""
        users = {
            end: edge.user_id for edge in self.edges for end in (edge.source_id, edge.target_id)
        }
        owners = {*users.values()}
        owner = owners.pop() if len(owners) == 1 else None
        neighbours = [
            near.model_copy(update={"name": display_name(near.name, users.get(near.id))})
            for near in self.neighbours
        ]
        edges = [edge.for_display() for edge in self.edges]
        name = display_name(self.name, owner)
        return self.model_copy(update={"name": name, "neighbours": neighbours, "edges": edges})


class GraphPath(Record, frozen=True):
    """A shortest path between two entities, ignoring the direction of relationships.

    ``names`` are the entities on it, from first to last. If no path was found, ``found`` is false,
    and ``truncated`` says whether the search stopped early, so that there may still be one.
    """

    names: list[str] = Field(default_factory=list)
    edges: list[EdgeView] = Field(default_factory=list)
    found: bool = False
    truncated: bool = False

    def for_display(self) -> Self:
        """Return it with the names that people read: a user's id, not ``USER_ID``."""
        owner = self.edges[0].user_id if self.edges else None
        names = [display_name(name, owner) for name in self.names]
        edges = [edge.for_display() for edge in self.edges]
        return self.model_copy(update={"names": names, "edges": edges})

    def __bool__(self) -> bool:
        """Return whether a path was found."""
        return self.found
