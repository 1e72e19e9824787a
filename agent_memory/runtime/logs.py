"""The library's loggers. ``logging`` takes 3 ms of a start of 180: it is imported to log a line.

What a hook imports does that by itself, and does without this module.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

_INFO: Final = 20
"""``logging.INFO``."""


@functools.cache
def logger(name: str = "agent_memory") -> logging.Logger:
    """Return a logger.

    ``logging.getLogger`` takes a lock each time, which a Ctrl-C at the wrong moment leaves held:
    every other thread that stored then waited for ever. It is asked once for each name.
    """
    import logging  # noqa: PLC0415 - see above

    return logging.getLogger(name)


def is_log_read(name: str) -> bool:
    """Return whether anybody reads a logger: not without having imported ``logging``."""
    # Another thread may be in the middle of importing it: a search failed with AttributeError.
    is_imported = hasattr(sys.modules.get("logging"), "getLogger")
    return is_imported and logger(name).isEnabledFor(_INFO)
