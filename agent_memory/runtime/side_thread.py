"""A thread for what can be computed while another one is inside a database's statement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Result = TypeVar("Result")


class SideThread:
    """Computes pure functions beside the caller's thread, one at a time.

    That helps while the caller waits without holding Python's lock, as for a long statement. Use it
    as a context manager: the thread is started when there is something to compute, and has ended
    afterwards.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def begin(self, compute: Callable[..., Result], *values: Any) -> Callable[[], Result]:  # noqa: ANN401 - its own
        """Begin to compute; return a function that waits for the result.

        Where no thread can be started, that function computes it.
        """
        try:
            if self._pool is None:
                # It takes 6 ms, and cannot be imported once the main thread has ended.
                from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

                self._pool = ThreadPoolExecutor(1, thread_name_prefix="agent-memory-side")
            return self._pool.submit(compute, *values).result
        except RuntimeError:  # too many threads, or shutdown
            self._pool = None  # what it did not begin would stay in its queue
            return partial(compute, *values)
