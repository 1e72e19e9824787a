"""The machine that a benchmark ran on, for the head of its output."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import apsw


def describe_machine() -> str:
    """Return one line: the library, Python, SQLite, system, processor and cores."""
    return (
        f"agent-memory {version('agent-memory')}, Python {platform.python_version()}, SQLite"
        f" {apsw.sqlite_lib_version()}, {platform.system()} {platform.machine()},"
        f" {_processor()}, {os.cpu_count()} cores"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"
