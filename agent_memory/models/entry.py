"""One thing that goes into a store or comes out of it, whatever the format."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Section(StrEnum):
    """What an entry is of."""

    AGENT = "agent"
    MEMORY = "memory"
    SCRATCHPAD = "scratchpad"
    REJECTION = "rejection"
    ENTITY = "entity"
    RELATIONSHIP = "relationship"
    REVIEW = "review"
    MODEL = "model"
    VECTOR = "vector"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a file or a store tells: plain JSON data, not validated yet.

    The ``fields`` of a ``MEMORY`` are named as those of ``Memory`` are, times ISO 8601 text; what
    is not told is left out. ``place`` says where it stands in a file (``"line 12"``), ``error``
    what is wrong with it: then it cannot be taken. ``repairs`` tells what was put right.
    """

    section: Section
    fields: dict[str, Any]
    place: str = ""
    error: str | None = None
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parcel:
    """An entry that was validated: by column, what it tells, and nothing that it does not."""

    section: Section
    place: str
    values: dict[str, Any]
