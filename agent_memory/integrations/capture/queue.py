"""A bounded queue that one thread works off in the background.

Whoever puts something in never waits for the work.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

_LOOK_AGAIN_SECONDS: Final = 0.5
_HEAD_START_SECONDS: Final = 0.002


class WorkQueue(Generic[Item]):
    """Items that wait to be worked off, in order; ``do`` is called with each and must not raise.

    At most ``size`` wait. The thread is a daemon, begun with the first item.
    """

    def __init__(self, do: Callable[[Item], None], *, size: int) -> None:
        self._do = do
        self._size = size
        self._begin()

    def _begin(self) -> None:
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._worker: int | None = None
        self._is_closing = False

    def __len__(self) -> int:
        """Count what waits or is being worked on."""
        return len(self._items) + (self._worker is not None)

    def put(self, item: Item) -> bool:
        """Add an item, and return whether there was room for it."""
        with self._changed:
            if self._is_closing or len(self._items) >= self._size:
                return False
            self._items.append(item)
            if self._thread is None:
                self._start()
            self._changed.notify_all()
        return True

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all is worked off, ``timeout`` seconds at most; return whether it is."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._worker == threading.get_ident():
            return False  # asked for by the work itself, which would wait for its own end
        while True:
            with self._changed:
                is_done = not self._items and self._worker is None
                is_late = deadline is not None and time.monotonic() >= deadline
                if is_done or is_late:
                    return is_done
                is_running = self._thread is not None and self._thread.is_alive()
                if is_running or self._worker is not None:
                    left = _LOOK_AGAIN_SECONDS if deadline is None else deadline - time.monotonic()
                    self._changed.wait(max(0.0, min(left, _LOOK_AGAIN_SECONDS)))
                    continue
            self._work_one()  # no thread can be begun when the interpreter ends

    def close(self, timeout: float) -> list[Item]:
        """Take nothing more, work off what waits, and return what was left when time was up."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self.flush(timeout)
        with self._changed:
            left = list(self._items)
            self._items.clear()
            self._changed.notify_all()
        return left

    def start_anew(self) -> None:
        """In a forked child: the thread is the parent's, and so is what waited."""
        was_closing = self._is_closing
        self._begin()
        self._is_closing = was_closing

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="agent-memory-capture", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter ends: `flush` does the work
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while True:
            with self._changed:
                was_idle = not self._items
                while not self._items:
                    if self._is_closing:
                        return
                    self._changed.wait()
            if was_idle:  # whoever put it in returns before it is worked on
                time.sleep(_HEAD_START_SECONDS)
            self._work_one()

    def _work_one(self) -> None:
        with self._changed:
            if not self._items or self._worker is not None:
                return
            item = self._items.popleft()
            self._worker = threading.get_ident()
        try:
            self._do(item)
        finally:
            with self._changed:
                self._worker = None
                self._changed.notify_all()
