"""The command's standard streams: closed, full or unreadable ones are the caller's fault.

A shell closes them with ``<&-``, ``>&-`` and ``2>&-``, and a full disk accepts nothing more. Such a
failure is reported as what it is, and what a command did stays done.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click

from agent_memory import ValidationError

_MODES: Final = {"stdin": "r", "stdout": "w", "stderr": "w"}
_CLOSED: Final[set[str]] = set()


class StdoutUnwritable(click.ClickException):
    """stdout cannot be written, as on a full disk."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"stdout cannot be written: {error.strerror or error} (changes made before that"
            " are kept, and only the output is lost)"
        )


class _Answers(io.TextIOWrapper):
    """stdout, whose failures are the caller's. click handles a reader that has gone."""

    def write(self, text: str) -> int:
        with _own_failures():
            return super().write(text)

    def flush(self) -> None:
        try:  # no helper: at exit the interpreter closes this after the module's names are gone
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StdoutUnwritable(error) from error


class _Diagnostics(io.TextIOWrapper):
    """stderr, which never fails: an unwritable message must not end a working command."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        try:  # noqa: SIM105 - as above
            super().flush()
        except OSError:
            pass


def prepare_streams() -> None:
    """Replace closed streams by the null device, and let the others fail as they should.

    Otherwise the next file to be opened gets the descriptor, and printed text ends up in it.
    """
    for descriptor, (name, mode) in enumerate(_MODES.items()):
        if getattr(sys, name) is not None:
            continue
        _CLOSED.add(name)
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor: this one
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    for name, kind in {"stdout": _Answers, "stderr": _Diagnostics}.items():
        if name not in _CLOSED:
            stream = getattr(sys, name)
            raw = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115
            setattr(sys, name, kind(raw, stream.encoding, line_buffering=stream.line_buffering))


def show_escapes() -> None:
    """Let a terminal or file without UTF-8 show what it cannot write as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def refuse_closed(*names: str) -> None:
    """Raise ``UsageError`` if a stream that a command needs is closed."""
    for name in names:
        if name in _CLOSED:
            raise click.UsageError(f"{name} is closed, and this command needs it")


def stdin_bytes() -> BinaryIO:
    """Return stdin. Raises ``UsageError`` if it is closed or cannot be read."""
    refuse_closed("stdin")
    stdin = sys.stdin.buffer
    try:
        if isinstance(stdin, io.BufferedReader):
            stdin.peek(1)
    except OSError as error:
        raise click.UsageError(f"stdin cannot be read: {error.strerror or error}") from error
    return stdin


def stdin_text(field: str) -> str:
    """Return the text on stdin, the value of ``field``. Raises ``ValidationError``."""
    try:
        return stdin_bytes().read().decode("utf-8-sig")  # Windows begins texts with a mark
    except UnicodeDecodeError as error:
        raise ValidationError.of(field, f"stdin is not UTF-8: {error}", "-") from error


def refuse_json_beside_export(output: str, printed_as: str | None, printed_by: str) -> None:
    """Raise ``UsageError`` if stdout would get both an export and the result as JSON."""
    if output == "-" and printed_as == "json":
        raise click.UsageError(
            f"--{printed_by} and an export to stdout exclude each other: give --output PATH"
        )


@contextlib.contextmanager
def place_to_write(output: str) -> Iterator[Path]:
    """Give the body a path to write to; for ``-`` a temporary file that is then copied to stdout.

    Raises ``UsageError`` if stdout is closed.
    """
    if output != "-":
        yield Path(output)
        return
    import shutil  # noqa: PLC0415 - 3 ms, only for an export

    from agent_memory.runtime.private_folders import private_folder  # noqa: PLC0415 - likewise

    with private_folder() as folder:
        yield (place := folder / "export")
        refuse_closed("stdout")
        with place.open("rb") as file, _own_failures():
            shutil.copyfileobj(file, sys.stdout.buffer)


@contextlib.contextmanager
def _own_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutUnwritable(error) from error


def discard_stdout() -> None:
    """Discard the rest of stdout: nobody reads it, or it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note_closed_stdout() -> None:
    """Say on stderr that nothing was printed, if stdout was closed."""
    if "stdout" in _CLOSED:
        click.echo("note: stdout is closed: nothing was printed", err=True)
