"""Forking with open databases: nobody is inside SQLite at that moment, and the child starts anew.

A thread that is inside SQLite while another forks leaves SQLite's own locks held in the child for
ever: a store from there was seen to hang. So a fork first waits for every database's lock, as
``logging`` does for its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final, Protocol


class Forkable(Protocol):
    """What takes part: something that other threads may be inside of."""

    def hold(self) -> None:
        """Wait until no other thread is inside, and keep them out."""

    def release(self) -> None:
        """Let other threads in again."""

    def leave_parent(self) -> None:
        """Start anew, in the child: what was open is the parent's."""


_members: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
_held: Final[list[Forkable]] = []
_one_at_a_time: Final = threading.Lock()


class Lock:
    """A lock that is free in a forked child, whoever held it in the parent at that moment."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock, and return whether that worked."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Give the lock back; in a child, one that was taken before the fork is nobody's."""
        if self._pid == os.getpid():
            self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def join(member: Forkable) -> None:
    """Take part in forks from now on, for as long as the member lives."""
    with _one_at_a_time:
        _members.add(member)


def _before_fork() -> None:
    _one_at_a_time.acquire()
    _held.extend(_members)
    for member in _held:
        member.hold()


def _in_parent() -> None:
    for member in _held:
        member.release()
    _held.clear()
    _one_at_a_time.release()


def _in_child() -> None:
    for member in _held:
        member.leave_parent()
    _held.clear()
    _one_at_a_time.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
