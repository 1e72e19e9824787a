"""One input at a time: what it may raise, how long it may take, and what is told when it does not.

An input counts as a hang after ``LIMIT_SECONDS``, whether it comes back or not. A part of a
campaign may have ``MOST_MEMORY`` of addresses: what unfolds without end is an error, not the end
of the machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final, TypeVar

from agent_memory import AgentMemoryError

from .tally import Tally

LIMIT_SECONDS: Final = 5.0
MOST_MEMORY: Final = 6 * 2**30
_MOST_SHOWN: Final = 400

Result = TypeVar("Result")
Case = Callable[[Random], None]


class Broken(Exception):
    """A promise was broken. ``count`` is the count of the tally that it belongs to."""

    def __init__(self, count: str, message: str) -> None:
        super().__init__(message)
        self.count = count


class _Hung(BaseException):
    """The time of an input is up. Not an ``Exception``: nobody may take it for a failure."""


class Trials:
    """The trials of one part of the campaign, and what came of them."""

    def __init__(self, target: str, seed: str, *, limit: float = LIMIT_SECONDS) -> None:
        self.tally = Tally()
        self.random = Random(f"{seed}/{target}")
        self._target = target
        self._limit = limit
        self._told: set[str] = set()

    def run(
        self,
        act: Callable[[], Result],
        shown: object,
        *,
        allowed: tuple[type[Exception], ...] = (AgentMemoryError,),
    ) -> Result | None:
        """Try one input; ``None`` when it was refused, or went wrong. ``shown`` is the input."""
        self.tally.cases += 1
        self.tally.count(self._target)
        started = time.monotonic()
        try:
            with _alarm(self._limit):
                result = act()
        except _Hung:
            self._wrong("hangs", shown, f"took over {self._limit:g} s")
        except Broken as broken:
            self._wrong(broken.count, shown, str(broken))
        except allowed as error:
            self._refused(error, shown)
        except Exception:  # noqa: BLE001 - the very thing that is looked for
            self._wrong("errors", shown, _shortened(traceback.format_exc(limit=-6)))
        else:
            return self._in_time(result, started, shown)
        return None

    def _in_time(self, result: Result, started: float, shown: object) -> Result:
        if time.monotonic() - started > self._limit:  # the alarm was swallowed on its way
            self._wrong("hangs", shown, f"took over {self._limit:g} s")
        return result

    def _refused(self, error: Exception, shown: object) -> None:
        """Count a refusal: it must have a message that can be printed anywhere."""
        self.tally.count("refused")
        try:
            str(error).encode()
        except UnicodeEncodeError:
            self._wrong("errors", shown, f"{type(error).__name__} cannot be printed: {error!r}")

    def _wrong(self, count: str, shown: object, message: str) -> None:
        setattr(self.tally, count, getattr(self.tally, count) + 1)
        text = _as_text(shown)
        sort = message.strip().rpartition("\n")[2][:80]
        if sort in self._told:  # one of each is enough to begin with
            return
        self._told.add(sort)
        told = f"fuzz, {self._target}, input {self.tally.cases}: {text[:_MOST_SHOWN]}: {message}"
        self.tally.note(told.encode(errors="backslashreplace").decode())


def broken_unless(holds: bool, message: str, *, count: str = "mismatches") -> None:
    """Raise ``Broken`` unless something holds."""
    if not holds:
        raise Broken(count, message)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Give the body a folder of its own, in memory where there is such a place; it goes after."""
    quick = Path("/dev/shm")
    is_there = quick.is_dir() and os.access(quick, os.W_OK)
    is_within = tempfile.gettempdir().startswith(str(quick))  # a place was chosen already
    place = quick if is_there and not is_within else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def confine() -> None:
    """Bound what this process may take, and let it see warnings as errors."""
    warnings.simplefilter("error")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End the body when its time is up. What is in C ends with the process: ``run_parts`` sees."""
    old = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise _Hung


def _as_text(shown: object) -> str:
    try:
        if isinstance(shown, tuple):  # what was done, and with what
            return ": ".join(map(_as_text, shown))
        return shown if isinstance(shown, str) else str(shown()) if callable(shown) else repr(shown)
    except RecursionError:
        return "a value that is nested too deeply to be shown"


def _shortened(text: str) -> str:
    return text if len(text) <= 1500 else f"{text[:300]} … {text[-1200:]}"
