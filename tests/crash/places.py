"""Places to try a memory in: disks that are small, read-only or shared; programs that run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


def started(code: str, *words: object, **variables: str) -> subprocess.Popen[str]:
    """Start another Python process; lines can be sent to it."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


def finished(code: str, *words: object, **variables: str) -> str:
    """Run another Python process to its end and return what it printed."""
    with started(code, *words, **variables) as process:
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, err
    return out.strip()


def line(process: subprocess.Popen[str]) -> str:
    """Wait for the next line that a process prints."""
    assert process.stdout is not None
    found = process.stdout.readline()
    assert found or process.stderr is None, process.stderr.read()
    return found.strip()


def tell(process: subprocess.Popen[str], text: str = "") -> None:
    """Send a line to a process."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


@contextmanager
def _mounted(place: Path, *command: str, why: str) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip(why)
    try:
        yield place
    finally:
        unmount = ["umount"] if os.getuid() == 0 else ["fusermount", "-u"]
        for _ in range(50):  # a process that was killed may hold it for a moment
            if not subprocess.run([*unmount, str(place)], capture_output=True).returncode:
                break
            time.sleep(0.1)


def small_disk(place: Path, kilobytes: int) -> AbstractContextManager[Path]:
    """Mount a disk of its own, which is soon full."""
    options = f"size={kilobytes}k,mode=0700"
    words = ("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place))
    return _mounted(place, *words, why="mounting a small disk needs root")


def shared_drive(folder: Path, place: Path, *options: str) -> AbstractContextManager[Path]:
    """Mount a folder once more as a drive that the system calls ``fuse.sshfs``."""
    joined = ",".join(("subtype=sshfs", *options))
    words = ("bindfs", "-o", joined, str(folder), str(place))
    return _mounted(place, *words, why="this needs bindfs, and a system that lets it mount")


@contextmanager
def read_only_drive(place: Path) -> Iterator[Path]:
    """Let a folder be read-only for everybody, root too."""
    words = ("mount", "--bind", str(place), str(place))
    with _mounted(place, *words, why="mounting needs root"):
        remount = ["mount", "-o", "remount,ro,bind", str(place)]
        if subprocess.run(remount, capture_output=True).returncode:
            pytest.skip("this system remounts nothing read-only")
        yield place
