"""The most memory that a process ever had."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """Return the largest resident set of this process, in bytes.

    On Linux ``getrusage`` starts a child at what its parent had: a test in a large process would
    measure that, and never fail.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [it for it in status.read_text().splitlines() if it.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
