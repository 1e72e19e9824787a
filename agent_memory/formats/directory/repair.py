"""Turns a line of E's files into a memory's fields; repairs what it can, and reports it."""

from __future__ import annotations

import re
from typing import Any, Final

from agent_memory.errors import ValidationError, described
from agent_memory.formats.directory.layout import KINDS, kind_in
from agent_memory.formats.directory.shape import NO_PLACE
from agent_memory.models.enums import Importance, MemoryCategory, MemoryKind, TaskStatus
from agent_memory.models.portable import Entry, Section
from agent_memory.models.times import is_time, parse_time

NESTED: Final = "agent_memory"
"""The key under which a line has what E has no place for, where that is in no file of its own."""

_FIELDS: Final = frozenset(
    """id type content category created_at updated_at accessed_at access_count tags importance
    archived task_metadata""".split()
)
_IMPORTANCES: Final = frozenset(importance.value for importance in Importance)
_STATUSES: Final = frozenset(status.value for status in TaskStatus)
_WORDS_OF_STATUS: Final = {
    **{status.value: status for status in TaskStatus},
    **dict.fromkeys(("done", "complete", "finished", "closed"), TaskStatus.COMPLETED),
}
_OF_TASK: Final = frozenset("status completed_at blockers outcome".split())
_NUMBER: Final = re.compile(r"\s*(\d{1,18})(?:\.0*)?\s*")
_WORDS_OF_TRUTH: Final = {
    "true": True,
    "yes": True,
    "1": True,
    "false": False,
    "no": False,
    "0": False,
}


def entry_of(
    item: dict[str, Any],
    *,
    kind: MemoryKind,
    is_in_archive: bool,
    further: dict[str, Any] | None,
    place: str,
    repairs: tuple[str, ...],
) -> Entry:
    """Return the memory in a line, or its fault.

    ``kind`` is that of the file's name, ``further`` what our own file says about this memory.
    """
    repair = _LineRepair(item, kind)
    try:
        fields = repair.fields(further, is_in_archive=is_in_archive)
    except ValidationError as error:
        return Entry(Section.MEMORY, {}, place, str(error), repairs)
    return Entry(Section.MEMORY, fields, place, None, (*repairs, *repair.repairs))


class _LineRepair:
    """The reading of one line. ``repairs`` tells what was put right."""

    def __init__(self, item: dict[str, Any], kind: MemoryKind) -> None:
        self.repairs: list[str] = []
        self._item = {key: value for key, value in item.items() if value is not None}
        self._kind = kind
        self._leftover: dict[str, Any] = {}

    def fields(self, further: dict[str, Any] | None, *, is_in_archive: bool) -> dict[str, Any]:
        """Return the memory's fields, by our names. Raises ``ValidationError``."""
        nested = self._item.pop(NESTED, None)
        if further is None and isinstance(nested, dict):
            further = nested
        elif nested is not None:
            self._item[NESTED] = nested
        item = self._item
        count = self._access_count()
        fields: dict[str, Any] = {
            "id": self._id(),
            "content": self._content(),
            "category": self._category(),
            "tags": self._tags(),
            **self._times(count, further or {}),
            "access_count": count,
            "kind": self._type(),
            "importance": self._importance(),
            "archived": self._archived(is_in_archive=is_in_archive),
            "task_metadata": self._task_metadata(),
        }
        fields = {key: value for key, value in fields.items() if value is not None}
        if "accessed_at" in item:
            fields.setdefault("last_accessed", None)
        metadata = self._metadata()
        return self._completed(fields, metadata, further or {})

    def _note(self, text: str) -> None:
        self.repairs.append(text)

    def _id(self) -> str | None:
        value = self._item.get("id")
        if value is None:
            self._note("id is missing: using a new one")
        elif isinstance(value, int) and not isinstance(value, bool):
            self._note(f"id {value} is a number: using it as a string")
            return str(value)
        elif not isinstance(value, str):
            raise _unfit("id", value, "is not a string")
        return value

    def _content(self) -> str:
        value = self._item.get("content")
        if value is None:
            raise ValidationError("content: is missing")
        if not isinstance(value, str):
            raise _unfit("content", value, "is not a string")
        return value

    def _category(self) -> Any:  # noqa: ANN401 - what is no text is refused as that of any format
        value = self._item.get("category")
        if value is None:
            self._note(f"category is missing: using {MemoryCategory.NOTE.value}")
        return value

    def _type(self) -> str:
        value = self._item.get("type")
        if isinstance(value, str):
            if value in KINDS:
                return value
            meant = kind_in(value) or self._kind
        else:
            meant = self._kind
        self._note(f"type {_shown(value)}: using {meant.value}")
        return meant.value

    def _importance(self) -> str:
        value = self._item.get("importance")
        if isinstance(value, str) and value in _IMPORTANCES:
            return value
        word = value.strip().lower() if isinstance(value, str) else ""
        meant = Importance(word) if word in _IMPORTANCES else Importance.MEDIUM
        self._note(f"importance {_shown(value)}: using {meant.value}")
        return meant.value

    def _access_count(self) -> int:
        value = self._item.get("access_count")
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        is_number = isinstance(value, str | float) and not isinstance(value, bool)
        match = _NUMBER.fullmatch(str(value)) if is_number else None
        count = int(match[1]) if match else 0
        self._note(f"access_count {_shown(value)}: using {count}")
        return count

    def _archived(self, *, is_in_archive: bool) -> bool:
        value = self._item.get("archived")
        if isinstance(value, bool) and (value or not is_in_archive):
            return value
        if is_in_archive:
            if value is not None:
                self._note(f"archived {_shown(value)}: it is in the archive, so using true")
            return True
        meant = _WORDS_OF_TRUTH.get(str(value).strip().lower(), False)
        self._note(f"archived {_shown(value)}: using {str(meant).lower()}")
        return meant

    def _tags(self) -> list[Any]:
        value = self._item.get("tags")
        if isinstance(value, list):
            if any(isinstance(tag, dict | list) for tag in value):
                raise _unfit("tags", value, "has an element that is not a string")
            tags = [
                tag if isinstance(tag, str) else _plain(tag) for tag in value if tag is not None
            ]
            if tags != value:
                self._note(f"tags {_shown(value)}: using {', '.join(tags)}")
            return tags
        if isinstance(value, dict):
            raise _unfit("tags", value, "is not a list of strings")
        words = [] if value is None else [word.strip() for word in _plain(value).split(",")]
        tags = [word for word in words if word]
        self._note(f"tags {_shown(value)}: using {', '.join(tags) or 'none'}")
        return tags

    # Times ------------------------------------------------------------------------------------

    def _times(self, count: int, further: dict[str, Any]) -> dict[str, Any]:
        """Return the times by our names; a missing one is taken from the others."""
        names = ("created_at", "updated_at", "accessed_at")
        created, updated, accessed = (self._time(name) for name in names)
        made = created or updated or accessed
        if created is None:
            source = "updated_at" if updated else "accessed_at" if accessed else "the import's time"
            self._note(f"created_at {self._fault('created_at')}: using {source}")
        if updated is None:
            source = "created_at" if created else "the creation time"
            self._note(f"updated_at {self._fault('updated_at')}: using {source}")
        if accessed is None:
            source = "updated_at" if count and updated else "created_at" if count else "never"
            self._note(f"accessed_at {self._fault('accessed_at')}: using {source}")
            accessed = (updated or made) if count else None
        elif made is not None and parse_time(accessed) == parse_time(made):
            was_accessed = further.get("accessed", bool(count))
            accessed = accessed if was_accessed else None
        return {"timestamp": made, "updated_at": updated or made, "last_accessed": accessed}

    def _time(self, name: str) -> str | None:
        value = self._item.get(name)
        return value if isinstance(value, str) and is_time(value) else None

    def _fault(self, name: str) -> str:
        value = self._item.get(name)
        return "is missing" if value is None else f"{value!r:.60} is not a time"

    # Tasks ------------------------------------------------------------------------------------

    def _task_metadata(self) -> dict[str, Any] | None:
        """Return a task's metadata; what is not of it is left over."""
        document = self._item.get("task_metadata")
        if document is None:
            return None
        if not isinstance(document, dict):
            self._note(f"task_metadata {_shown(document)}: moved to the metadata")
            self._leftover["task_metadata"] = document
            return None
        task = {
            key: value for key, value in document.items() if key in _OF_TASK and value is not None
        }
        rest = {key: value for key, value in document.items() if key not in _OF_TASK}
        self._repair_status(task, rest)
        self._mend_rest_of_task(task, rest)
        if rest:
            names = ", ".join(rest)
            self._note(f"task_metadata: {names!r:.80} moved to the metadata")
            self._leftover["task_metadata"] = rest
        return task

    def _repair_status(self, task: dict[str, Any], rest: dict[str, Any]) -> None:
        value = task.get("status")
        if isinstance(value, str) and value in _STATUSES:
            return
        word = re.sub(r"[\s_]+", "-", value.strip().lower()) if isinstance(value, str) else ""
        if word in _WORDS_OF_STATUS:
            meant = _WORDS_OF_STATUS[word]
        else:
            is_blocked = bool(task.get("blockers"))
            meant = TaskStatus.BLOCKED if is_blocked else TaskStatus.IN_PROGRESS
            meant = TaskStatus.COMPLETED if "completed_at" in task else meant
            if value is not None:
                rest["status"] = value
        task["status"] = meant.value
        self._note(f"task_metadata.status {_shown(value)}: using {meant.value}")

    def _mend_rest_of_task(self, task: dict[str, Any], rest: dict[str, Any]) -> None:
        completed = task.get("completed_at")
        if completed is not None and not (isinstance(completed, str) and is_time(completed)):
            rest["completed_at"] = task.pop("completed_at")
        if isinstance(blocker := task.get("blockers"), str):
            task["blockers"] = [blocker]
            self._note("task_metadata.blockers is a single string: using a list of it")

    # Metadata, and what our own file tells ----------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        metadata = self._item.get("metadata", {})
        if not isinstance(metadata, dict):
            raise _unfit("metadata", metadata, "is not an object")
        names = _FIELDS | {"metadata"}
        unknown = {key: value for key, value in self._item.items() if key not in names}
        unknown |= self._leftover
        if twice := sorted(unknown.keys() & metadata.keys()):
            raise ValidationError(f"{twice[0]!r:.80}: is both in the line and in its metadata")
        return {**metadata, **unknown}

    def _completed(
        self, fields: dict[str, Any], metadata: dict[str, Any], further: dict[str, Any]
    ) -> dict[str, Any]:
        """Add what E has no place for. What E has a place for is as E's file has it."""
        rest = {key: value for key, value in further.items() if key not in ("id", "accessed")}
        fields["id"] = rest.pop("memory_id", None) or fields.get("id")
        if fields["id"] is None:
            del fields["id"]
        task = _whole_task(fields, rest.pop("task_metadata", None))
        if task is not None:
            fields["task_metadata"] = task
        ours = rest.pop("metadata", {})
        if not isinstance(ours, dict):
            raise _unfit("metadata", ours, "is not an object")
        fields |= {name: rest.pop(name) for name in NO_PLACE if rest.get(name) is not None}
        # Where our own line says of no metadata, there was none. E's has no place for it.
        if (metadata := {**ours, **rest, **metadata}) or further:
            fields["metadata"] = metadata
        return fields


def _whole_task(fields: dict[str, Any], ours: object) -> dict[str, Any] | None:
    """Return a task's metadata with our part of it, if that still goes with what E's file says."""
    task = fields.get("task_metadata")
    if not isinstance(ours, dict):
        return task
    if task is None:
        return None if fields["kind"] == MemoryKind.TASK.value else ours
    return {**ours, **task} if ours.get("status") == task["status"] else task


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: object) -> str:
    return "is missing" if value is None else f"{value!r:.60} is not valid"


def _unfit(field: str, value: object, fault: str) -> ValidationError:
    return ValidationError(f"{field}: {fault} (got {described(value)})")
