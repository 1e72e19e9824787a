"""The library's loggers. ``logging`` takes 3 ms to import and is loaded only to log a line."""

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

    ``logging.getLogger`` takes a lock each time, which a Ctrl-C at the wrong moment leaves held;
    every other thread that stored then waited for ever. So it is called once per name.
    """
    import logging  # noqa: PLC0415 - see above

    return logging.getLogger(name)


def is_log_read(name: str) -> bool:
    """Return whether anybody reads a logger; nobody does before ``logging`` is imported."""
    # Another thread may be in the middle of importing it: a search failed with AttributeError.
    is_imported = hasattr(sys.modules.get("logging"), "getLogger")
    return is_imported and logger(name).isEnabledFor(_INFO)
