"""How commands print: text, rows or JSON in an envelope; errors; progress."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import click

from agent_memory import AgentMemoryError, ValidationError
from agent_memory.cli.options import current_session
from agent_memory.cli.tables import has_color, safe, shown
from agent_memory.errors import with_notes
from agent_memory.models.columns import MemoryValues
from agent_memory.models.times import format_time, now_utc

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from agent_memory import FoundSecrets

_STARTED: Final = time.perf_counter()
_MAX_DEPTH: Final = 100
# Characters that JSON leaves as they are and a terminal obeys: controls and direction marks.
_UNSAFE: Final = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def emit(
    data: object,
    *,
    text: str,
    secrets: Sequence[FoundSecrets] = (),
    rows: tuple[type, Sequence[object]] | None = None,
) -> None:
    """Print a command's result on stdout: as JSON, or as text that cannot control the terminal.

    ``rows`` are the items of a list, after their class; --csv and --nl print them. For --table and
    --fmt see ``table``.
    """
    session = current_session()
    printed_as = session and session.printed_as
    if rows is not None and printed_as == "nl":
        for item in rows[1]:
            click.echo(_UNSAFE.sub(_escaped, json.dumps(_row(item), ensure_ascii=False)))
        return
    if rows is not None and printed_as == "csv":
        _print_csv(*rows)
        return
    if printed_as != "json":
        if text:
            click.echo("\n".join(map(shown, text.split("\n"))))
        return
    envelope: dict[str, Any] = {
        "success": True,
        "data": plain(data),
        "metadata": {
            "timestamp": format_time(now_utc()),
            "processing_time_ms": round((time.perf_counter() - _STARTED) * 1000),
            **({"secrets": plain(list(secrets))} if secrets else {}),
        },
    }
    if _is_sparse(data) and envelope.keys() == envelope["data"].keys():
        envelope = envelope["data"]  # it is already such a response
    if session and session.request_id:
        envelope["metadata"]["request_id"] = session.request_id
    _print_json(envelope)


def _row(item: object) -> dict[str, Any]:
    """Return an item of a list as a row; for a hit, its memory's fields and its scores."""
    row: dict[str, Any] = plain(item)
    return {**row.pop("memory", {}), **row}


def _print_csv(kind: type, items: Sequence[object]) -> None:
    """Print rows as CSV below a header line, which an empty list has too."""
    import csv  # noqa: PLC0415 - seldom

    names = _field_names(kind) or ()
    headings = [*(MemoryValues._fields if "memory" in names else ()), *names]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(name for name in headings if name != "memory")
    for item in items:
        writer.writerow(_cell(value) for value in _row(item).values())


def _cell(value: object) -> object:
    """Return a value for CSV: a list or mapping as JSON, None as an empty cell."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
    return safe(text) if isinstance(text, str) and sys.stdout.isatty() else text


def _print_json(data: object) -> None:
    click.echo(_UNSAFE.sub(_escaped, json.dumps(data, ensure_ascii=False, indent=2)))


class ErrorWrapper:
    """Prints an error on stdout in C's envelope, for --envelope."""

    def __init__(self) -> None:
        from agent_memory.models.documents.envelopes import new_request_id  # noqa: PLC0415 - seldom

        self.request_id = new_request_id()

    def emit(self, error: Exception) -> None:
        """Print one error."""
        from agent_memory.models.documents.envelopes import failure  # noqa: PLC0415 - seldom

        wrapped = failure(error, now=now_utc(), request_id=self.request_id)
        _print_json(wrapped.model_dump(mode="json"))


def fail(error: AgentMemoryError, *, as_json: bool) -> None:
    """Print an error on stderr, with its notes."""
    message = with_notes(error)
    if not as_json:
        label = click.style("Error:", fg="red") if has_color(sys.stderr) else "Error:"
        click.echo(f"{label} {safe(message)}", err=True)
        return
    details = {"errors": plain(error.errors())} if isinstance(error, ValidationError) else {}
    body = {
        "code": error.code,
        "message": message,
        "details": details,
        "timestamp": format_time(now_utc()),
    }
    click.echo(json.dumps({"error": body}, ensure_ascii=True, indent=2), err=True)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr, each on a line of its own."""
    for note in notes:
        click.echo(f"note: {safe(note)}", err=True)


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give the body a function for the number done and the total, which moves a bar in a terminal.

    The bar starts with the first call, and a call without progress is ignored: click would count
    the time before it, or such a call, as a step, and predicted hours for an import that took
    seconds.
    """
    with contextlib.ExitStack() as stack:
        bars: list[ProgressBar[int]] = []

        def move(done: int, total: int) -> None:
            if not bars:
                hidden = not sys.stderr.isatty()
                bar = click.progressbar(length=total, label=label, file=sys.stderr, hidden=hidden)
                bars.append(stack.enter_context(bar))
            if done > bars[0].pos:
                bars[0].update(done - bars[0].pos)

        yield move


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def plain(data: object, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each kind of data
    """Turn models into the JSON data that Pydantic makes of them.

    Data nested over 100 deep, as no memory is, is left out; a number that JSON does not have
    becomes text. (Pydantic's own serializer costs a new process 20 ms to build.)
    """
    if depth > _MAX_DEPTH:
        return "…"
    if (names := _field_names(type(data))) is not None:
        fields = {name: plain(getattr(data, name), depth + 1) for name in names}
        is_sparse = _is_sparse(data)
        return {name: value for name, value in fields.items() if not (is_sparse and value is None)}
    if isinstance(data, dict):
        return {str(key): plain(value, depth + 1) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(item, depth + 1) for item in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    if isinstance(data, datetime):
        return data.isoformat().replace("+00:00", "Z")
    if isinstance(data, Enum):
        return data.value
    return data if data is None or isinstance(data, str | int | float | bool) else str(data)


def _field_names(kind: type) -> Sequence[str] | None:
    """Return the names of the fields of a model or a named tuple; ``None`` for anything else.

    It does not check for the class of models: importing it would take a third of a command that has
    none.
    """
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    fields: Mapping[str, FieldInfo] | None = getattr(kind, "model_fields", None)
    return None if fields is None else [name for name in fields if not fields[name].exclude]


def _is_sparse(data: object) -> bool:
    return bool(getattr(type(data), "is_sparse", False))


def details_text(model: BaseModel | MemoryValues) -> str:
    """Show every field of a model that is not empty, and the fields of nested models."""
    rows: list[tuple[str, str]] = []
    for name, value in plain(model).items():
        if isinstance(value, dict) and value:
            rows += [(name, ""), *_rows({f"  {key}": each for key, each in value.items()})]
        else:
            rows += _rows({name: value})
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{safe(name):{width}}  {safe(value)}".rstrip() for name, value in rows)


def _rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in values.items()
        if value not in (None, [], {})
    ]
