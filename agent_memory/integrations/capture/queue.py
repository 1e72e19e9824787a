"""A bounded queue that one background thread processes. Putting an item in never waits."""

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
    """A queue of items, processed in order; ``do`` is called with each and must not raise.

    At most ``size`` items wait. The thread is a daemon, started with the first item.
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
        """Count the items that wait or are being processed."""
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
        """Wait until everything is processed, at most ``timeout`` seconds; return whether it is."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._worker == threading.get_ident():
            return False  # called by the work itself, which would wait for its own end
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
            self._work_one()  # no thread can be started while the interpreter exits

    def close(self, timeout: float) -> list[Item]:
        """Accept nothing more, process what waits, and return what is left when time is up."""
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
        """Reset in a forked child: the thread and the items are the parent's."""
        was_closing = self._is_closing
        self._begin()
        self._is_closing = was_closing

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="agent-memory-capture", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter exits: `flush` does the work
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
            if was_idle:  # let the caller of `put` return first
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
