"""Stores what hooks heard: scanned by rules, under the settings of the file.

A hook starts a process for it that the host does not wait for (``start``); the running server and
the command line do it themselves (``take_in``). Only one process works on it at a time. What cannot
be stored, because the file is locked or the disk full, waits for the next one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from agent_memory.integrations.hosts.journal import Journal, is_anything_heard
from agent_memory.integrations.hosts.spool import Spool

_NAMES: Final = ("host", "event", "session")
"""The fields of an entry that go into the log, besides its outcome."""
_UNREADABLE: Final = "a line captured by hooks cannot be read"
_NOTHING: Final = "no sentence of it is one to keep"
_CLAIM: Final = 3
"""The file descriptor by which the started process holds the claim."""


def start(folder: str, agent_id: str, root: str | None) -> None:
    """Start a process that stores what is waiting, unless one is running; it outlives this one.

    Raises ``OSError`` if none can be started.
    """
    spool = Spool(folder)
    # A bundled program is its own interpreter, and has no -m.
    if os.name != "posix" or not sys.executable or hasattr(sys, "frozen"):
        take_in(folder, agent_id, root)
        return
    claim = spool.claim()
    if claim is None:
        return
    try:
        os.set_inheritable(claim, claim == _CLAIM)  # a second copy would stay open
        handles: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, claim, _CLAIM)]
        handles += [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
        # -P: the host's folder is a project, which may have modules of any name.
        words = [sys.executable, "-P", "-m", "agent_memory.integrations.hosts.intake"]
        words += [folder, agent_id, *([root] if root else [])]
        environment = {**os.environ, "PYTHONPATH": _module_path()}
        os.posix_spawn(sys.executable, words, environment, file_actions=handles, setsid=True)
    finally:
        os.close(claim)


def _module_path() -> str:
    """Return this process's module search path, without the folder that it was started in.

    A program in one file (shiv, PEX) unpacks its packages where no other process looks.
    """
    begins_there = not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()])
    places = sys.path[1:] if begins_there else sys.path
    return os.pathsep.join(filter(os.path.isabs, places))  # others are relative to that folder


def take_in(folder: str, agent_id: str, root: str | None, *, claim: int | None = None) -> bool:
    """Store what is waiting, unless another process does; return whether nothing is left.

    ``claim`` is that of ``Spool.claim``, if the caller has it; it is closed. What cannot be stored
    is a line of the log, and raises nothing. Raises ``OSError`` for a file that cannot be read or
    written.
    """
    spool = Spool(folder)
    while claim is not None or is_anything_heard(folder):
        claim = spool.claim() if claim is None else claim
        if claim is None:
            return False
        try:
            is_done = not is_anything_heard(folder) or _all_stored(spool, folder, agent_id, root)
        finally:
            os.close(claim)
        if not is_done:
            return False
        claim = None
    return True


def _all_stored(spool: Spool, folder: str, agent_id: str, root: str | None) -> bool:
    from agent_memory.integrations.hosts.host_memory import Keeper  # noqa: PLC0415 - the whole library

    journal = Journal(folder)
    with contextlib.closing(Keeper(agent_id, root)) as keeper:

        def take(entry: Mapping[str, Any] | None) -> bool:
            counts, why = ({"dropped": 1}, _UNREADABLE) if entry is None else keeper.keep(entry)
            line = {name: (entry or {}).get(name, "") for name in _NAMES}
            outcome = "failed" if why else "kept" if counts else "nothing"
            line |= {"outcome": outcome, **counts}
            if why or not counts:
                line["why"] = why or _NOTHING
            with contextlib.suppress(OSError):
                journal.append(line)
            return not keeper.is_stuck

        return spool.hand_out(take)


if __name__ == "__main__":
    take_in(sys.argv[1], sys.argv[2], sys.argv[3] if sys.argv[3:] else None, claim=_CLAIM)
