"""Reads points of Qdrant's local mode, which are pickles, without running anything in them.

``pickle.loads`` would run whatever a file tells it to. Here a pickle may contain plain data and the
two classes of a point, each of which becomes a bag of its values. Any other name is refused, and so
is every operation that calls, jumps, or reserves more room than the bytes that are there.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Iterator
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.formats.peers.entries import label, memories
from agent_memory.models.fields import is_memory_id
from agent_memory.models.portable import Entry, PassedOver, Section

_MODULE: Final = "qdrant_client.http.models.models"
_CLASSES: Final = ("PointStruct", "SparseVector")
_PLAIN: Final = frozenset(
    """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT
    SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES
    EMPTY_LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS
    MEMOIZE BINPUT BINGET LONG_BINGET STACK_GLOBAL GLOBAL NEWOBJ BUILD
    """.split()
)
_MOST_VALUES: Final = 100_000
_BROKEN: Final = (
    pickle.UnpicklingError, EOFError, ValueError, LookupError, AttributeError, TypeError,
    RecursionError, OverflowError,
)  # fmt: skip
_SAID: Final = ("data", "created_at", "updated_at", "user_id", "run_id", "hash")
_OF_THE_INDEX: Final = ("text_lemmatized",)


class _Bag:
    """What a class of Qdrant's is here: its values, and nothing that could be called."""

    state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Bag]:
        """Return the bag for a class that is known; anything else is refused."""
        if module != _MODULE or name not in _CLASSES:
            raise pickle.UnpicklingError(f"{f'{module}.{name}'!r:.80} is not executed")
        return _Bag


def point_of(data: object) -> dict[str, Any]:
    """Return the values of a pickled point.

    Raises ``ValidationError`` with a message to put after a place.
    """
    if not isinstance(data, bytes):
        raise ValidationError(f"point: is a {type(data).__name__}, not bytes")
    try:
        names = {operation.name for operation, _, _ in pickletools.genops(data)}
        if refused := names - _PLAIN:
            raise pickle.UnpicklingError(f"{', '.join(sorted(refused))} is not executed")
        point = _Unpickler(io.BytesIO(data)).load()
    except _BROKEN as error:
        raise ValidationError(f"point: cannot be read: {error!s:.100}") from error
    state = point.state if isinstance(point, _Bag) else None
    values = state.get("__dict__") if isinstance(state, dict) else None
    if not isinstance(values, dict):
        raise ValidationError("point: is not a Qdrant point")
    _refuse_too_many(values.get("payload"))
    return values


def _refuse_too_many(payload: object) -> None:
    """Refuse what would be far longer written out than it is: lists of the same lists, or rings."""
    waiting, count = [payload], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > _MOST_VALUES:
            raise ValidationError(f"point: has more than {_MOST_VALUES:,} values")
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple | set):
            waiting += value


def entries_of_point(data: object, place: str, source: str) -> Iterator[Entry | PassedOver]:
    """Yield the memory that mem0 keeps as a point."""
    try:
        point = point_of(data)
    except ValidationError as error:
        yield Entry(Section.MEMORY, {}, place, str(error))
        return
    payload, memory_id = point.get("payload"), point.get("id")
    if not isinstance(payload, dict) or "data" not in payload:
        yield PassedOver("points that are not memories")
        return
    unsaid = (*_SAID, *_OF_THE_INDEX)
    ids = {name: label(payload.get(name)) for name in ("user_id", "run_id")}
    yield from memories(
        place,
        payload["data"],
        source=source,
        timestamp=payload.get("created_at"),
        metadata={name: value for name, value in payload.items() if name not in unsaid},
        id=memory_id if is_memory_id(memory_id) else None,
        **ids,
    )
