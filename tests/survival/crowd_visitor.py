"""Another program on the same file: Python's own ``sqlite3``, which knows nothing of the library.

``read`` holds a snapshot, again and again, ``read long`` now and then for longer than anybody waits
for it; ``write`` stores, changes and deletes rows, and keeps a
journal. It goes on until its standard input is closed. It imports nothing of the library, whose
SQLite is another one.
"""

from __future__ import annotations

import json
import random
import select
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any
from zlib import crc32


def _goes_on(seconds: float) -> bool:
    return not select.select([sys.stdin], [], [], seconds)[0]


def read(connection: sqlite3.Connection, rng: random.Random, *, longest: float) -> None:
    """Read the same twice, with a while between: nothing may have changed."""
    sql = "SELECT count(*), sum(length(content)), sum(version) FROM memories"
    goes_on = True
    while goes_on:
        connection.execute("BEGIN")
        before = connection.execute(sql).fetchone()
        goes_on = _goes_on(rng.choice((0.05, 0.2, 0.5, longest)))
        after = connection.execute(sql).fetchone()
        connection.execute("COMMIT")
        assert before == after, f"a snapshot changed from {before} to {after}"


def write(connection: sqlite3.Connection, rng: random.Random, journal: Path, name: str) -> None:
    """Store, change and delete rows."""
    told: dict[str, Any] = {}
    made = 0
    with journal.open("a", buffering=1) as file:

        def changed(sql: str, values: tuple[Any, ...], key: str, new: list[Any]) -> None:
            file.write(json.dumps(["intent", {key: new}]) + "\n")
            connection.execute(sql, values)
            file.write(json.dumps(["done", None]) + "\n")
            told[key] = new

        while _goes_on(0.005):
            there = [key for key, new in told.items() if new[0] is not None]
            chance = rng.random()
            if chance < 0.5 or not there:
                made += 1
                key = f"{name}-{made}"
                text = _text(key, 1)
                new = [text, ["r1"], "medium", False, 1, "A"]
                sql = "INSERT INTO memories (id, content, tags) VALUES (?, ?, ?)"
                changed(sql, (key, text, '["r1"]'), key, new)
                continue
            key = rng.choice(there)
            _, tags, importance, archived, version, events = told[key]
            if chance < 0.8:
                text, tags = _text(key, version + 1), [f"r{version + 1}"]
                new = [text, tags, importance, archived, version + 1, f"{events}U"]
                sql = "UPDATE memories SET content = ?, tags = ? WHERE id = ?"
                changed(sql, (text, json.dumps(tags), key), key, new)
            else:
                new = [None, [], "medium", False, 1, f"{events}D"]
                changed("DELETE FROM memories WHERE id = ?", (key,), key, new)
        file.write(json.dumps(["finished", {"counts": {}, "longest": ["", 0], "slow": 0}]) + "\n")


def _text(name: str, revision: int) -> str:
    text = f"The walnut of {name} at revision r{revision} is by hand"
    return f"{text} #{crc32(text.encode())}"


def main() -> None:
    """Do what is asked for."""
    role, path, name, seed = sys.argv[1:]
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    rng = random.Random(f"{seed}-{name}")
    if role.startswith("read"):
        read(connection, rng, longest=1.0 if role == "read" else 6.5)
    else:
        write(connection, rng, Path(path).with_name(f"{name}.journal"), name)
    connection.close()


if __name__ == "__main__":
    time.sleep(0.1)
    main()
