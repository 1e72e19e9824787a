"""The memory tools for pydantic-ai. It needs the extra ``pydantic-ai``."""

from __future__ import annotations

from functools import partial
from typing import Any

from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.tools import MemoryTools

try:
    from pydantic_ai import Tool
except ModuleNotFoundError as error:
    raise missing_package("pydantic_ai", error) from error


def agent_tools(tools: MemoryTools) -> list[Tool[Any]]:
    """Return the tools for ``Agent(tools=…)``.

    pydantic-ai runs each in a thread. It answers with the result as JSON data: a failure is told to
    the model, and never raised.
    """
    return [
        Tool.from_schema(
            function=partial(_call, tools, definition["name"]),
            name=definition["name"],
            description=definition["description"],
            json_schema=definition["input_schema"],
        )
        for definition in tools.definitions()
    ]


def _call(tools: MemoryTools, name: str, /, **arguments: object) -> dict[str, Any]:
    return tools.call(name, arguments).to_dict()
