"""Plain records that cross the seam: what tables take and return, the same for every engine."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agent_memory.errors import StorageCorrupt
from agent_memory.models.columns import COLUMNS
from agent_memory.models.fields import decode_json, normalize_tags
from agent_memory.models.times import format_time, read_stored_time, shifted

if TYPE_CHECKING:
    from agent_memory.models.decision import Review
    from agent_memory.models.embedding_rows import EmbeddingModel
    from agent_memory.models.safety import Rejection
    from agent_memory.storage.centering import Centred
else:  # names in quotes would be compiled: the first takes a millisecond
    Centred = EmbeddingModel = Rejection = Review = object

Row = tuple[Any, ...]

MEMORY_COLUMNS: Final = ("seq", *COLUMNS)
"""The columns of a memory, in the order in which a table gives them."""


BEFORE_ALL: Final = -(2**63)
"""Where reading by the page begins: other programs number rows from below 1, too."""


def page_end(row_id: int, *, after: int) -> int:
    """Return the row id at which a page ends: the next page is read from there on.

    In a damaged file the rows can be out of order: reading them by the page would never end. That
    is ``StorageCorrupt``.
    """
    if row_id <= after:
        raise StorageCorrupt(f"the file is damaged: row {row_id} comes after row {after}")
    return row_id


RowValues = dict[str, Any]
"""A row: by column, what it holds."""


class Signals(NamedTuple):
    """What ranking needs of a memory beside its words."""

    row_id: int
    session: str
    timestamp: str
    access_count: int


def read_json(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Read JSON of whatever program; ``None`` for what is none.

    An escape can stand for half a character, which no output can take.
    """
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return None
    if "\\u" not in text:
        return value
    from agent_memory.models.row_repair import storable  # noqa: PLC0415 - seldom used

    return storable(value)


def read_list(text: str | None) -> list[str]:
    """Read tags as the table of tags has them: another program may have written ``["DB"]``."""
    value = read_json(text or "[]")
    return normalize_tags(map(str, value)) if isinstance(value, list) else []


class Operation(NamedTuple):
    """What was done, and the numbers of its first and last change in the history."""

    operation_id: int
    verb: str
    first_change: int
    last_change: int
    done_at: str
    session_id: str | None


def rejection_of_row(row: Row) -> Rejection:
    """Make the model of a rejection, without validation: another program may have written it."""
    from agent_memory.models.safety import Rejection  # noqa: PLC0415 - to store takes no model

    rejection_id, words_hash, word_count, reason, rejected_at = row
    return Rejection.model_construct(
        rejection_id=rejection_id,
        words_hash=words_hash.hex(),
        word_count=word_count,
        reason=reason,
        rejected_at=read_stored_time(rejected_at),
    )


def review_of_row(row: Row) -> Review:
    """Make the model of a review, without validation too."""
    from agent_memory.models.decision import Review  # noqa: PLC0415 - a search reads no review

    values = dict(zip(Review.model_fields, row, strict=True))
    values["proposed_at"] = read_stored_time(row[6])
    return Review.model_construct(**values)


Reason = Literal["stored", "accessed", "promoted"]


RECALL_WINDOW: Final = timedelta(hours=1)
"""How long a memory that was given out is remembered as such."""


def recall_window(now: datetime) -> tuple[str, str]:
    """Return the first and the last moment at which what was given out counts.

    A later one was written before the clock was set back: nothing is known of its age.
    """
    return format_time(shifted(now, -RECALL_WINDOW)), format_time(now)


class Alternative(NamedTuple):
    """What may stand in a memory for a word of a query: a form of it, its parts, what was meant.

    All of ``words``, as the index holds them, must stand in a memory; where ``is_phrase``, one
    right after the other. ``written`` says them to people; ``weight`` is what it counts beside the
    word itself.
    """

    words: tuple[str, ...]
    written: str
    weight: float = 1.0
    is_phrase: bool = False


class Term(NamedTuple):
    """A word of a query: as the index holds it, stemmed, and as it was written.

    ``is_prefix`` stands for all words that begin so; ``is_name`` tells that the query writes it
    as a name, ``is_light`` that the word says little of what is asked for, ``is_pair`` that it is
    two characters of a script without spaces. ``alternatives`` are what counts as the word too.
    ``times`` is how often the query has it.
    """

    word: str
    written: str
    is_prefix: bool = False
    is_name: bool = False
    alternatives: tuple[Alternative, ...] = ()
    is_light: bool = False
    is_pair: bool = False
    times: int = 1

    @property
    def match(self) -> str:
        """Return the FTS5 query for this term alone: quoted, so that nothing is an operator.

        FTS5 stems it itself. It must not be given a stem: that of "databas" is "databa".
        """
        quoted = '"' + self.written.replace('"', '""') + '"'
        return f"{quoted} *" if self.is_prefix else quoted


class WordCounts(NamedTuple):
    """The words of a memory: how often terms of the query stand in it, and how many in all.

    ``counts`` is by the place of the term in the query, in its order, without those that are not
    there. ``opens`` tells whether its first word is one of the terms, ``asks`` whether it ends with
    a question. ``variants`` has what stands in it for words of the query, by the word asked for.
    """

    counts: Mapping[int, float]
    length: int
    opens: bool
    asks: bool
    variants: Mapping[str, str] = MappingProxyType({})


class QueryVector(NamedTuple):
    """A query's vector, quantized, and the model that it and the vectors it meets are of.

    ``seen`` is the vector as seen from the middle of the store, if cosines are to be from there.
    """

    model: EmbeddingModel
    data: bytes
    seen: Centred | None = None

    @property
    def asked(self) -> bytes | Centred:
        """Return what cosines are asked with."""
        return self.data if self.seen is None else self.seen

    @property
    def direction(self) -> bytes:
        """Return what the nearest vectors point to."""
        return self.data if self.seen is None else self.seen.data


class NearestVectors(NamedTuple):
    """Cosines by row of the nearest, and what was not as it should be."""

    cosines: dict[int, float]
    degraded: str | None = None
