"""Plain records that cross the seam: what tables take and return, the same for every engine."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agent_memory.errors import StorageCorrupt
from agent_memory.models.columns import COLUMNS
from agent_memory.models.fields import decode_json, is_named_session, normalize_tags
from agent_memory.models.times import format_time, read_stored_time, shifted

if TYPE_CHECKING:
    from agent_memory.models.decision import Review
    from agent_memory.models.embedding_rows import EmbeddingModel
    from agent_memory.models.safety import Rejection
    from agent_memory.storage.centering import Centred
else:  # names in quotes would be compiled, and the first compilation takes a millisecond
    Centred = EmbeddingModel = Rejection = Review = object

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
"""The values of a statement: in order, or by name."""

MEMORY_COLUMNS: Final = ("seq", *COLUMNS)
"""The columns of a memory, in the order in which a table returns them."""


BEFORE_ALL: Final = -(2**63)
"""Where reading by the page begins: other programs may number rows from below 1."""
NO_LIMIT: Final = 2**63 - 1
"""The limit of a statement that has none, and a number after those of all rows."""


def page_end(row_id: int, *, after: int) -> int:
    """Return the row id at which a page ends; the next page is read from there.

    Raises ``StorageCorrupt`` if the rows are out of order, as in a damaged file: reading them page
    by page would never end.
    """
    if row_id <= after:
        raise StorageCorrupt(f"the file is damaged: row {row_id} comes after row {after}")
    return row_id


RowValues = dict[str, Any]
"""The values of a row, by column."""


class Signals(NamedTuple):
    """What ranking needs of a memory besides its words.

    ``is_in_session`` is whether its session was named by somebody: others do not connect memories.
    """

    row_id: int
    session: str
    is_in_session: bool
    moment: datetime
    access_count: int


def signals_of_row(row: Row) -> Signals:
    """Build the signals of a row: its number, session, time and access count."""
    row_id, session, timestamp, access_count = row
    moment = read_stored_time(timestamp)
    return Signals(row_id, session, is_named_session(session), moment, access_count)


def read_json(text: str) -> Any:  # noqa: ANN401 - JSON data
    """Parse JSON written by any program; return ``None`` if it is invalid.

    An escape can stand for half a surrogate pair, which no output can encode.
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
    """Parse tags as the table of tags has them: another program may have written ``["DB"]``."""
    value = read_json(text or "[]")
    return normalize_tags(map(str, value)) if isinstance(value, list) else []


class Operation(NamedTuple):
    """An operation, with the ids of its first and last change in the history."""

    verb: str
    first_change: int
    last_change: int
    done_at: str
    session_id: str | None


def rejection_of_row(row: Row) -> Rejection:
    """Build the model of a rejection, without validation: another program may have written it."""
    from agent_memory.models.safety import Rejection  # noqa: PLC0415 - storing needs no model

    rejection_id, words_hash, word_count, reason, rejected_at = row
    return Rejection.model_construct(
        rejection_id=rejection_id,
        words_hash=words_hash.hex(),
        word_count=word_count,
        reason=reason,
        rejected_at=read_stored_time(rejected_at),
    )


def review_of_row(row: Row) -> Review:
    """Build the model of a review, likewise without validation."""
    from agent_memory.models.decision import Review  # noqa: PLC0415 - a search reads no review

    *values, newer, is_edited, is_newer_edited, _ = row
    fields = dict(zip(Review.model_fields, values, strict=True))
    review = Review.model_construct(**{**fields, "proposed_at": read_stored_time(row[6])})
    review._newer, review._is_edited = newer, bool(is_edited)
    review._is_newer_edited = bool(is_newer_edited)
    return review


Reason = Literal["stored", "accessed", "promoted"]


RECALL_WINDOW: Final = timedelta(hours=1)
"""How long a memory counts as recently returned."""


def recall_window(now: datetime) -> tuple[str, str]:
    """Return the first and last moment at which a returned memory counts as recent.

    A later time was written before the clock was set back: nothing is known of its age.
    """
    return format_time(shifted(now, -RECALL_WINDOW)), format_time(now)


class Alternative(NamedTuple):
    """What may stand in a memory for a word of a query: another form, its parts, a correction.

    A memory must contain all of ``words``, as the index holds them, and consecutively if
    ``is_phrase``. ``written`` is the form shown to people; ``weight`` is how much it counts
    relative to the word itself.
    """

    words: tuple[str, ...]
    written: str
    weight: float = 1.0
    is_phrase: bool = False


class Term(NamedTuple):
    """A word of a query: stemmed, as the index holds it, and as it was written.

    ``is_prefix`` means that it stands for all words that begin with it; ``is_name`` that the query
    writes it as a name; ``is_light`` that the word says little about what is asked; ``is_pair``
    that it is two characters of a script without spaces. ``alternatives`` also count as the word.
    ``times`` is how often the query contains it, ``correction`` what it most likely meant if it is
    misspelt.
    """

    word: str
    written: str
    is_prefix: bool = False
    is_name: bool = False
    alternatives: tuple[Alternative, ...] = ()
    is_light: bool = False
    is_pair: bool = False
    times: int = 1
    correction: str = ""

    @property
    def match(self) -> str:
        """Return the FTS5 query for this term alone, quoted so that nothing is an operator.

        FTS5 stems it itself. It must not be given a stem: the stem of "databas" is "databa".
        """
        quoted = '"' + self.written.replace('"', '""') + '"'
        return f"{quoted} *" if self.is_prefix else quoted


class WordCounts(NamedTuple):
    """The words of a memory: how many it has, and how often each term of the query occurs.

    ``counts`` is keyed by the term's position in the query; terms that do not occur are left out.
    ``opens`` tells whether its first word is one of the terms, ``asks`` whether it ends with a
    question. ``variants`` maps a word of the query to the variant of it that the memory contains.
    """

    counts: Mapping[int, float]
    length: int
    opens: bool
    asks: bool
    variants: Mapping[str, str] = MappingProxyType({})


class QueryVector(NamedTuple):
    """A query's quantized vector, and the model of this vector and of those it is compared with.

    ``seen`` is the vector relative to the mean of the store, if cosines are to be centred.
    """

    model: EmbeddingModel
    data: bytes
    seen: Centred | None = None

    @property
    def asked(self) -> bytes | Centred:
        """Return the form of the query with which cosines are computed."""
        return self.data if self.seen is None else self.seen

    @property
    def direction(self) -> bytes:
        """Return the vector whose nearest neighbours are wanted."""
        return self.data if self.seen is None else self.seen.data


class NearestVectors(NamedTuple):
    """The cosines of the nearest rows, and what was degraded."""

    cosines: dict[int, float]
    degraded: str | None = None
