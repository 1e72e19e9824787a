"""Amplifier: memory for its agents, as modules of its own protocol and as a bundle.

The modules are, by the names that mount plans and bundles use:

- ``tool-memory-semantic``: the tools, ``memory_store`` to ``memory_forget``;
- ``hooks-memory-capture``: stores by itself what matters of tool outputs and of what is said;
- ``hooks-memory-context``: puts the scratchpad before the model, once, and again when it changed;
- ``context-memory-scratchpad``: the same as the session's context manager, which it replaces.

What they do is in the modules of this package, each with a ``mount``, and the package's entry
points name those: where agent-memory is installed, a mount plan needs no more than the name. A
bundle loads its modules from a directory instead, and wants packages there that are called
``amplifier_module_…``: they are in ``modules/``, one directory for all, with nothing in them but an
import of the ``mount`` here. ``modules/`` needs no installation of its own. Beside it are the
bundle's other files; ``BUNDLE`` is the directory to load them from.

This module imports nothing of Amplifier's. The others need ``amplifier-core``, which a host has.
"""

from pathlib import Path
from typing import Final

__all__ = ["BUNDLE"]

BUNDLE: Final = Path(__file__).resolve().parent
"""The bundle: the directory of ``bundle.md``, ``behaviors/``, ``context/`` and ``agents/``."""
