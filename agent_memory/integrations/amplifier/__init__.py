"""Amplifier: memory for its agents, as modules of its own protocol and as a bundle.

The modules, by the names that mount plans and bundles use:

- ``tool-memory-semantic``: the tools, ``memory_store`` to ``memory_forget``;
- ``hooks-memory-capture``: automatically stores what matters in tool outputs and in what is said;
- ``hooks-memory-context``: puts the scratchpad before the model, once and whenever it has changed;
- ``context-memory-scratchpad``: the same as the session's context manager, which it replaces.

They are implemented in the modules of this package, each with a ``mount``, and registered as entry
points: where agent-memory is installed, a mount plan only needs the name. A bundle loads its
modules from a directory instead, and expects packages named ``amplifier_module_…`` there: they are
in ``modules/``, one directory for all, and only import the ``mount`` from here. ``modules/`` needs
no installation of its own. The bundle's other files are beside it; ``BUNDLE`` is the directory to
load them from.

This module imports nothing from Amplifier. The others need ``amplifier-core``, which a host has.
"""

from pathlib import Path
from typing import Final

__all__ = ["BUNDLE"]

BUNDLE: Final = Path(__file__).resolve().parent
"""The bundle: the directory of ``bundle.md``, ``behaviors/``, ``context/`` and ``agents/``."""
