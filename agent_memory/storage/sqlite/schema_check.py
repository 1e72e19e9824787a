"""Tells the triggers and views that a file must have from those that someone else put into it.

Triggers run with every write and views with every use, so those of a file are compared with the
shipped migrations, letter by letter. An index on one of our tables can make every write fail if it
is unique, or run any computation with each if it is on an expression or has one as its condition.
One on columns, as `sqlite-utils create-index` makes it, runs nothing. Other tables, indexes and
views do no harm: nothing of ours uses them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from agent_memory.runtime.lazy_parts import lazy_property
from agent_memory.storage.sqlite.connection import (
    IRREPLACEABLE,
    SELECT_CODE,
    Database,
    Row,
    objects_made_by,
    quoted,
)

_EVENT: Final = re.compile(r"^(CREATE|DROP) (?:VIRTUAL )?(TABLE|VIEW|TRIGGER) (\w+)", re.MULTILINE)
_ADDED: Final = re.compile(r"^ALTER TABLE (\w+) ADD COLUMN (.+?);$", re.MULTILINE | re.DOTALL)
# ASCII, as SQLite's grammar is: Python took a collation NOCASE with a long s for SQLite's own. Any
# other character is a part of a name to SQLite.
_NAME: Final = r"""(?:"(?:[^"]|"")*"|\[[^\]]*\]|`[^`]*`|'[^']*'|[\w$\u0080-\U0010ffff]+)"""
# Compiled only if a file has more than was shipped, which is rare.
_INDEXED: Final = rf"(?ia)CREATE (?:UNIQUE )?INDEX {_NAME}\s*ON\s*({_NAME})\s*\("
_COLLATED: Final = r"(?:\s*\bCOLLATE\s+\"?(?:BINARY|NOCASE|RTRIM)\b\"?)?"
_COLUMN: Final = rf"\s*{_NAME}{_COLLATED}(?:\s*\b(?:ASC|DESC))?\s*"
_LITERAL: Final = r"(?:'(?:[^']|'')*'|[+-]?\d+(?:\.\d+)?\b|(?:NULL|TRUE|FALSE)\b)"
_COMPARISON: Final = (
    rf"\s*{_NAME}\s*(?:(?:=|==|!=|<>|<=?|>=?|\bIS(?:\s+NOT)?\b)\s*{_LITERAL}|\bNOT\s*NULL\b)\s*"
)
_CONDITION: Final = rf"\s*\bWHERE\b{_COMPARISON}(?:\b(?:AND|OR)\b{_COMPARISON})*"
_PLAIN_INDEX: Final = (
    rf"(?ia)CREATE INDEX {_NAME}\s*ON\s*{_NAME}\s*\({_COLUMN}(?:,{_COLUMN})*\)(?:{_CONDITION})?"
)
_CELLS_INDEX: Final = r"CREATE INDEX (embedding_index_\d+_chunks)_by_cell ON \1 \(partition00\)"
"""Ours on a table of sqlite-vec."""
_INDEX_PARTS: Final = ("config", "data", "docsize", "idx")
"""Ends of the names of the tables in which FTS5 keeps an index of what is in other tables."""
_OUR_PREFIXES: Final = (
    *("embedding_index_", "embedding_codes_", "embedding_cells_"),
    *(f"memory_index_{part}" for part in _INDEX_PARTS),
)
"""Prefixes of the names of the tables of both indexes, which no migration creates."""
# Code in a default would run with every write; a literal is not code. A literal of the wrong type
# would make every write to a strict table fail.
_DEFAULTS: Final = {
    "TEXT|ANY": r"'(?:[^']|'')*'",
    "INTEGER|INT|REAL|ANY": r"[+-]?\d{1,18}|TRUE|FALSE",
    "REAL": r"[+-]?\d{1,18}\.\d{1,18}",
}
_TYPED: Final = "|".join(
    rf"(?:{types})(?:\s+NOT\s+NULL)?\s+DEFAULT\s+(?:{literal})"
    for types, literal in _DEFAULTS.items()
)
_PLAIN: Final = rf"(?:{_TYPED})|(?:TEXT|INTEGER|INT|REAL|BLOB|ANY)(?:\s+DEFAULT\s+NULL)?"
_PLAIN_COLUMNS: Final = rf"(?ia:,\s*{_NAME}(?:\s+(?:{_PLAIN}))?\s*)*"
_MARK: Final = r"(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[(),]"
"""What shows where a definition ends; comments and strings are skipped."""
_LONGEST: Final = 60


class Fault(NamedTuple):
    """An object of a file that is not as it must be; ``kind`` is what it is or should be."""

    kind: str
    name: str
    state: Literal["foreign", "changed", "missing"]

    @property
    def concerns_views(self) -> bool:
        """Return whether readers would use something that is not as it must be."""
        return self.kind == "view"

    @property
    def can_be_mended(self) -> bool:
        """Return whether it can be repaired without losing anything."""
        return self.kind != "table" or (self.state == "missing" and self.name not in IRREPLACEABLE)

    @property
    def removal(self) -> str | None:
        """The SQL that removes it, or ``None`` if its name is not safe to read in a message."""
        is_plain = self.name.isascii() and self.name.isidentifier() and len(self.name) <= _LONGEST
        return f"DROP {self.kind.upper()} {quoted(self.name)}" if is_plain else None

    def __str__(self) -> str:
        name = self.name if self.name.isidentifier() else repr(self.name)
        shown = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
        return f"the {self.kind} {shown} is {_WORDS[self.state]}"


_WORDS: Final = {"foreign": "not agent-memory's", "changed": "changed", "missing": "missing"}


class ShippedSchema:
    """The objects of a schema, given the SQL of its migrations, in order."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._text = "\n".join(texts)
        self._places: dict[str, tuple[str, int]] = {}
        for event in _EVENT.finditer(self._text):
            verb, kind, name = event.groups()
            self._places.pop(name, None)
            if verb == "CREATE":
                self._places[name] = (kind.lower(), event.start())

    @lazy_property
    def objects(self) -> tuple[Row, ...]:
        """The type, name and SQL of each object, including indexes.

        Creating them takes milliseconds, a tenth of a command's time: a sound file needs none.
        """
        return tuple(objects_made_by(self._texts))

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind, in order of creation."""
        return [name for name, (its, _) in self._places.items() if its == kind]

    def has(self, name: str) -> bool:
        """Return whether an object, or a table that an index of ours keeps, has this name."""
        return name in self._places or _is_our_name(name)

    def sql(self, kind: str, name: str) -> str:
        """Return the SQL that creates an object."""
        return next(str(sql) for its, of, sql in self.objects if (its, of) == (kind, name))

    def faults(self, rows: Iterable[Row]) -> list[Fault]:
        """Compare the tables, views and triggers of a file, given by type, name and SQL."""
        faults: list[Fault] = []
        seen: set[str] = set()
        for kind, *values in rows:
            name, sql = map(_text, values)
            own, sql = name.lower(), sql.rstrip()  # `.dump` adds a newline after a final comment
            if kind == "index":
                if not self._is_harmless_index(sql):
                    faults.append(Fault(kind, name, "foreign"))
                continue
            should_be, place = self._places.get(own, ("", 0))
            if should_be == kind:
                seen.add(own)
                if not self._is_same(kind, own, sql, place):
                    faults.append(Fault(kind, own, "changed"))
            elif kind == "trigger" or should_be or (kind == "view" and _is_our_name(own)):
                faults.append(Fault(str(kind), name, "foreign"))
        missing = [name for name in self._places if name not in seen]
        return faults + [Fault(self._places[name][0], name, "missing") for name in missing]

    def _is_harmless_index(self, sql: str) -> bool:
        """Return whether an index is ours, on a foreign table, or compares only columns."""
        if f"{sql};" in self._text or re.fullmatch(_CELLS_INDEX, sql):
            return True
        table = re.match(_INDEXED, sql)
        name = table[1].strip("\"'`[]").lower() if table else ""
        # FTS5 and sqlite-vec write into the b-trees of their tables: an index on one ended in a
        # segmentation fault.
        if table is None or _is_our_name(name):
            return False
        return name not in self._places or re.fullmatch(_PLAIN_INDEX, sql) is not None

    def _is_same(self, kind: str, name: str, sql: str, place: int) -> bool:
        if self._text.startswith(f"{sql};", place):
            return True
        if kind != "table":
            return False
        if sql == self._with_added_columns(name, place):
            return True
        ours = self.sql(kind, name)  # as later migrations altered it
        return sql == ours or only_adds_columns(ours, sql)

    def _with_added_columns(self, name: str, place: int) -> str:
        """Return a table's SQL as SQLite keeps it after later migrations added columns to it."""
        end = self._text.index(")", self._text.index("\n)", place))
        added = "".join(
            f", {column[2]}" for column in _ADDED.finditer(self._text, place) if column[1] == name
        )
        return f"{self._text[place:end]}{added}{self._text[end : self._text.index(';', end)]}"


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _is_our_name(name: str) -> bool:
    return name.startswith(_OUR_PREFIXES)


def only_adds_columns(ours: str, theirs: str) -> bool:
    """Return whether a table is ours plus plain columns, as ``ALTER TABLE`` adds them.

    They may follow any of ours: a later migration may have added one after theirs.
    """
    pattern = _PLAIN_COLUMNS.join(map(re.escape, _definitions(ours)))
    return re.fullmatch(pattern, theirs) is not None


def _definitions(table: str) -> Iterator[str]:
    """Split a table's text into pieces, each up to where a column definition may follow."""
    depth = start = 0
    for mark in re.finditer(_MARK, table):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if (mark[0], depth) in ((",", 1), (")", 0)):
            yield table[start : mark.start()]
            start = mark.start()
    yield table[start:]


def temporary_views(shipped: ShippedSchema, faults: Iterable[Fault]) -> Iterator[str]:
    """Yield the SQL of temporary views to replace the file's, if those are not ours."""
    if any(fault.concerns_views for fault in faults):
        for name in shipped.names("view"):
            sql = shipped.sql("view", name).removeprefix("CREATE VIEW")
            yield f"CREATE TEMP VIEW IF NOT EXISTS{sql}"


def find_faults(database: Database, shipped: ShippedSchema) -> list[Fault]:
    """Return the faults of a file's schema. Must run inside a transaction."""
    return shipped.faults(database.rows(SELECT_CODE))


def drop_foreign(database: Database, faults: Iterable[Fault]) -> None:
    """Drop the triggers and views that are not ours, but no table: that may hold anything.

    Must run inside ``write(vetted=False)``: none of that code may run.
    """
    foreign = [fault for fault in faults if fault.state == "foreign" and fault.can_be_mended]
    for fault in sorted(foreign, key=lambda fault: fault.kind):  # a view takes its triggers along
        database.run(f"DROP {fault.kind} main.{quoted(fault.name)}")


def restore_own(database: Database, shipped: ShippedSchema, faults: Iterable[Fault]) -> None:
    """Re-create our changed or missing objects. Runs like ``drop_foreign``, after it."""
    ours = [fault for fault in faults if fault.state != "foreign" and fault.can_be_mended]
    for fault in ours:
        if fault.state == "changed":
            database.run(f'DROP {fault.kind} main."{fault.name}"')
    taken = {
        fault.name.lower()
        for fault in faults
        if fault.state == "foreign" and not fault.can_be_mended
    }
    wanted = {(fault.kind, fault.name) for fault in ours if fault.name not in taken}
    for kind, name, sql in shipped.objects:  # in the order in which they need each other
        if (kind, name) in wanted:
            # A `.clone` of a vacuumed file has these without the index, and they are in its way.
            for part in _INDEX_PARTS if "USING fts5(" in sql else ():
                database.run(f'DROP TABLE IF EXISTS main."{name}_{part}"')
            database.run(sql)
