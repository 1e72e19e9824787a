"""The table of fingerprints: by what a memory says, to the memories that say the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.sqlite.connection import Database, Row, further
from agent_memory.storage.sqlite.filters import Condition
from agent_memory.text.normalize import exact_form, near_form

_PAGE: Final = 1_000
# Texts are read as bytes: another program can store one that is not UTF-8, and no store of the
# same fact may fail because of it.
_COLUMNS: Final = """m.seq, CAST(m.id AS BLOB), CAST(m.content AS BLOB), CAST(m.user_id AS BLOB),
  CAST(m.run_id AS BLOB), CAST(m.category AS BLOB), CAST(m.tags AS BLOB),
  CAST(m.timestamp AS BLOB), r.recalled_at"""
_SELECT_SAME: Final = f"""
SELECT {_COLUMNS} FROM fingerprints AS f
JOIN memories AS m ON m.seq = f.seq LEFT JOIN recalls AS r ON r.seq = f.seq
WHERE f.fingerprint = ? AND m.archived = 0
ORDER BY r.recalled_at IS NULL, f.seq LIMIT ?"""
_SELECT_THOSE: Final = f"""
SELECT {_COLUMNS} FROM memories AS m LEFT JOIN recalls AS r ON r.seq = m.seq
WHERE m.seq IN (SELECT value FROM json_each(?)) AND m.archived = 0 ORDER BY m.seq"""
_SELECT_OF_ROWS: Final = """
SELECT m.seq, f.fingerprint, CASE WHEN f.fingerprint IS NULL THEN CAST(m.content AS BLOB) END,
  CAST(m.user_id AS BLOB), CAST(m.run_id AS BLOB)
FROM memories AS m LEFT JOIN fingerprints AS f USING (seq)
WHERE m.seq IN (SELECT value FROM json_each(?))"""
_SELECT_MISSING: Final = """
SELECT m.seq, CAST(m.content AS BLOB), CAST(m.user_id AS BLOB), CAST(m.run_id AS BLOB)
FROM fingerprints AS f JOIN memories AS m USING (seq)
WHERE f.fingerprint IS NULL AND f.seq > ? ORDER BY f.seq LIMIT ?"""
_SELECT_REPEATED: Final = """
SELECT f.fingerprint, count(*) FROM fingerprints AS f JOIN memories AS m USING (seq)
WHERE f.fingerprint IS NOT NULL AND m.archived = 0
GROUP BY f.fingerprint HAVING count(*) > 1 ORDER BY min(f.seq)"""


@dataclass(frozen=True, slots=True)
class Same:
    """A memory that may say the same; ``tags`` are JSON.

    ``timestamp`` is when it was learned, ``recalled_at`` when it was last given out, if that is
    known.
    """

    seq: int
    memory_id: str
    content: str
    user_id: str | None
    run_id: str | None
    category: str
    tags: str
    timestamp: str
    recalled_at: str | None


def fingerprint_of(content: str, user_id: str | None, run_id: str | None) -> int:
    """Return the number that near duplicates about the same user, of the same run, have alike.

    The library alone makes it: with a function of its own in the triggers, no other program could
    write to the file. A release that changes the forms must set all fingerprints to NULL.
    """
    parts = (near_form(exact_form(content)), user_id or "", run_id or "")
    digest = hashlib.blake2b("\x00".join(parts).encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _fingerprint_of_stored(content: bytes, user_id: bytes | None, run_id: bytes | None) -> int:
    return fingerprint_of(decoded(content), _decoded(user_id), _decoded(run_id))


def decoded(text: bytes) -> str:
    """Return a stored text; of one that is not UTF-8, the wrong bytes as escapes."""
    return text.decode(errors="backslashreplace")


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else decoded(text)


def _same(row: Row) -> Same:
    seq, memory_id, content, user_id, run_id, category, tags, timestamp, recalled_at = row
    return Same(
        seq=seq,
        memory_id=decoded(memory_id),
        content=decoded(content),
        user_id=_decoded(user_id),
        run_id=_decoded(run_id),
        category=decoded(category),
        tags=decoded(tags),
        timestamp=decoded(timestamp),
        recalled_at=recalled_at,
    )


def put(database: Database, fingerprints: Iterable[tuple[int, int]]) -> None:
    """Write fingerprints down, each with the row of its memory."""
    database.run_many("UPDATE fingerprints SET fingerprint = ? WHERE seq = ?", fingerprints)


def known(database: Database, fingerprints: Sequence[int]) -> set[int]:
    """Return those of some fingerprints that any memory has."""
    sql = """SELECT value FROM json_each(?)
    WHERE EXISTS (SELECT 1 FROM fingerprints WHERE fingerprint = value)"""
    return {value for (value,) in database.rows(sql, (to_json(list(fingerprints)),))}


def is_complete(database: Database) -> bool:
    """Return whether every memory has its fingerprint."""
    sql = "SELECT 1 FROM fingerprints WHERE fingerprint IS NULL LIMIT 1"
    return database.row(sql) is None


def complete_page(database: Database) -> list[int]:
    """Make the fingerprints of a page of memories that another program wrote or changed.

    Returns their rows. A row without its memory, of which a program can leave one, goes.
    """
    rows = database.rows(_SELECT_MISSING, (0, _PAGE))
    if not rows:
        database.run(
            "DELETE FROM fingerprints"
            " WHERE fingerprint IS NULL AND seq NOT IN (SELECT seq FROM memories)"
        )
    put(database, [(_fingerprint_of_stored(*parts), seq) for seq, *parts in rows])
    return [seq for seq, *_ in rows]


def is_left(database: Database, completed: Sequence[int]) -> bool:
    """Return whether a page that was just completed is not: the file is damaged then.

    Must run in the same transaction as ``complete_page``, whose result is given.
    """
    if not completed:
        return not is_complete(database)
    left = database.rows(_SELECT_MISSING, (0, 1))
    return bool(left) and left[0][0] <= completed[0]


def same(database: Database, fingerprint: int, *, limit: int) -> list[Same]:
    """Return the memories that have a fingerprint and are not archived, oldest first.

    Where there are more than ``limit``, those that were recalled come before older ones.
    """
    rows = database.rows(_SELECT_SAME, (fingerprint, limit))
    return sorted(map(_same, rows), key=lambda it: it.seq)


def of_rows(database: Database, seqs: Sequence[int]) -> dict[int, int]:
    """Return the fingerprint of each of these rows, made now for one that has none yet."""
    return {
        seq: _fingerprint_of_stored(*parts) if fingerprint is None else fingerprint
        for seq, fingerprint, *parts in database.rows(_SELECT_OF_ROWS, (to_json(list(seqs)),))
    }


def no_repeat_of(kept: Mapping[int, int]) -> Condition:
    """Return the condition that a memory does not repeat one of these, rows with fingerprints."""
    return Condition(
        "m.seq NOT IN (SELECT seq FROM fingerprints"
        " WHERE fingerprint IN (SELECT value FROM json_each(?))"
        " AND seq NOT IN (SELECT value FROM json_each(?)))",
        (to_json(list(kept.values())), to_json(list(kept))),
    )


def those(database: Database, seqs: Sequence[int]) -> list[Same]:
    """Return the memories of these rows that are not archived, oldest first."""
    return [_same(row) for row in database.rows(_SELECT_THOSE, (to_json(list(seqs)),))]


def same_without(database: Database, fingerprint: int) -> Iterator[int]:
    """Yield the rows that would have this fingerprint, of those that have none yet."""
    last = 0
    while rows := database.rows(_SELECT_MISSING, (last, _PAGE)):
        for seq, content, user_id, run_id in rows:
            if _fingerprint_of_stored(content, user_id, run_id) == fingerprint:
                yield seq
        last = further(rows[-1][0], than=last)


def repeated(database: Database) -> list[tuple[int, int]]:
    """Return the fingerprints that several memories have, and how many, oldest memory first."""
    return [(fingerprint, count) for fingerprint, count in database.rows(_SELECT_REPEATED)]
