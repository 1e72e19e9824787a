"""A plugin for Claude Code, with a marketplace file that offers it: a folder to share."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from agent_memory.integrations.hosts.installation import PROGRAM, Change, Installation, read_text
from agent_memory.integrations.hosts.table import HOSTS, SERVER

_DESCRIPTION: Final = (
    "Long-term memory of each project, in one SQLite file: recalled at the start and at prompts,"
    " captured by rules, with no model and no server."
)


def plugin_changes(folder: Path) -> list[Change]:
    """Return the changes that make a folder a marketplace with the plugin.

    Its command is not an absolute path: whoever adds the plugin has their own.
    """
    return [
        Change(path, read_text(path), f"{json.dumps(content, indent=2, ensure_ascii=False)}\n")
        for name, content in _files().items()
        if (path := folder / name)
    ]


def _files() -> dict[str, dict[str, Any]]:
    # The name that Claude Code gives to a plugin's server.
    installation = Installation(HOSTS["claude-code"], server_name=f"plugin:{SERVER}:{SERVER}")
    described = {"description": _DESCRIPTION, "version": version(PROGRAM)}
    hooks = {
        event.name: [installation.handler(event, [PROGRAM])] for event in installation.host.events
    }
    return {
        ".claude-plugin/marketplace.json": {
            "name": SERVER,
            "owner": {"name": SERVER},
            "metadata": {"description": _DESCRIPTION},
            "plugins": [{"name": SERVER, "source": "./plugin", **described}],
        },
        "plugin/.claude-plugin/plugin.json": {
            "name": SERVER,
            **described,
            "author": {"name": SERVER},
            "license": "MIT",
        },
        "plugin/hooks/hooks.json": {"description": _DESCRIPTION, "hooks": hooks},
        "plugin/.mcp.json": {"mcpServers": {SERVER: installation.server([PROGRAM])}},
    }
