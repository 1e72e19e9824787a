"""Places to try a memory in: disks that are small, read-only or shared; processes to run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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


def forked(work: Callable[[], object]) -> int:
    """Run something in a forked child, which ends with 0 if it went well; return its number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


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


@contextmanager
def disk_image(place: Path, megabytes: int, mkfs: str) -> Iterator[Path]:
    """Make a file system in a file with a program and its options, and mount that."""
    image = place.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(megabytes * 2**20)
    program, *options = mkfs.split()
    words = [program, *options, str(image)]
    if shutil.which(program) is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip(f"this needs {program}")
    mount = ("mount", "-o", "loop", str(image), str(place))
    with _mounted(place, *mount, why="mounting an image needs root and a loop device"):
        yield place


def fill(disk: Path, spare: int = 0) -> None:
    """Fill a disk up to some kilobytes, with a file and with what small files still find."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for length in (1 << 20, 4096, 512):
            with suppress(OSError):
                while True:
                    file.write(bytes(length))
    with suppress(OSError):
        for number in range(5_000):
            (disk / f"filler-{number}").write_bytes(b"x" * 100)
    if spare:
        os.truncate(filler, max(0, filler.stat().st_size - spare * 1024))
    os.sync()


def empty(disk: Path) -> None:
    """Take away what ``fill`` put there."""
    for path in disk.glob("filler*"):
        path.unlink()
    os.sync()  # btrfs gives the space back only then


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
