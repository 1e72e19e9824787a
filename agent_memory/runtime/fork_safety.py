"""Makes forks safe: no thread is inside SQLite at that moment, and the child starts anew.

If a thread is inside SQLite while another forks, SQLite's own locks stay held in the child for
ever: a store from there was seen to hang. So a fork first waits for every database's lock, as
``logging`` does for its own. The value of a ``Once`` is made under such a lock too.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, Protocol, TypeVar


class Forkable(Protocol):
    """Something that other threads may be inside of, and that therefore takes part in forks."""

    def door(self) -> AbstractContextManager[Any]:
        """Return the lock that a thread holds while it is inside."""

    def leave_parent(self) -> None:
        """Start anew, in the child: what was open is the parent's."""


_members: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
_held: Final[dict[tuple[int, int], Generator[None, None, None]]] = {}
"""The holders of the locks during a fork, by thread and lock id; clearing it releases them."""
_one_at_a_time: Final = threading.Lock()


class Lock:
    """A lock that is free in a forked child, whoever held it in the parent.

    Use it as ``with lock.bare:``. A ``with`` on a lock written in Python has a moment in which the
    lock is taken and the body not yet entered; a Ctrl-C then left it held, and the next store hung.
    """

    def __init__(self) -> None:
        self._by_process: dict[int, threading.Lock] = {}

    @property
    def bare(self) -> threading.Lock:
        """The lock of this process."""
        return self._by_process.setdefault(os.getpid(), threading.Lock())


def join(member: Forkable) -> None:
    """Take part in forks from now on, for as long as the member exists."""
    with _one_at_a_time:
        _members.add(member)


def _before_fork() -> None:
    interrupt = _hold([_one_at_a_time])
    interrupt = _hold([member.door() for member in list(_members)]) or interrupt
    if interrupt is not None:
        raise interrupt


def _hold(locks: Iterable[AbstractContextManager[Any]]) -> KeyboardInterrupt | None:
    """Wait for locks, and hold them until the fork is done. Return the Ctrl-C that came meanwhile.

    A fork cannot be stopped any more, so a Ctrl-C is only reported once all locks are held. When it
    ended the waiting instead, every remaining lock was released without being held; that failed,
    and the next memory that was opened waited for ever.
    """
    interrupt: KeyboardInterrupt | None = None
    for lock in locks:
        # Another thread that forks holds them too, and must be waited for.
        key = threading.get_ident(), id(lock)
        while key not in _held:
            try:
                holder = _holding(lock)
                next(holder)
                _held[key] = holder
            except KeyboardInterrupt as error:
                interrupt = error
    return interrupt


def _holding(lock: AbstractContextManager[Any]) -> Generator[None, None, None]:
    """Hold a lock until this is closed, or forgotten."""
    with lock:
        yield


def _in_child() -> None:
    for member in list(_members):
        member.leave_parent()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
    # Not a Python function: a Ctrl-C during the fork would come before its first line.
    os.register_at_fork(after_in_parent=_held.clear, after_in_child=_held.clear)


Value = TypeVar("Value")


class Once(Generic[Value]):
    """Makes a costly value when it is first needed; threads that ask meanwhile wait for it.

    If that fails, the error goes to the caller, and the next caller tries again.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made: list[Value] = []
        self._lock = Lock()

    @property
    def is_made(self) -> bool:
        """Whether the value is made, so that ``get`` takes no time."""
        return bool(self._made)

    def get(self) -> Value:
        """Return the value."""
        if not self._made:
            with self._lock.bare:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
