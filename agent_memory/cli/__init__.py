"""The `agent-memory` command: the names of ``commands``, which is imported on demand.

Plain questions do without it: see ``plain_reads``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.cli.commands import GROUPS as GROUPS
    from agent_memory.cli.commands import cli as cli
    from agent_memory.cli.commands import main as main
    from agent_memory.cli.commands import run as run


def __getattr__(name: str) -> Any:
    """Return a name of ``commands``."""
    return getattr(import_module("agent_memory.cli.commands"), name)
