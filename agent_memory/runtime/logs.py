"""The library's loggers. ``logging`` takes 3 ms of a start of 180: it is imported to log a line.

What a hook imports does that by itself, and does without this module.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

_INFO: Final = 20
"""``logging.INFO``."""


def logger(name: str = "agent_memory") -> logging.Logger:
    """Return a logger."""
    import logging  # noqa: PLC0415 - see above

    return logging.getLogger(name)


def is_log_read(name: str) -> bool:
    """Return whether anybody reads a logger: not without having imported ``logging``."""
    # Another thread may be in the middle of importing it: a search failed with AttributeError.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    return get_logger is not None and bool(get_logger(name).isEnabledFor(_INFO))
