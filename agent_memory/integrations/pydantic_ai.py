"""The memory tools for pydantic-ai. It needs the extra ``pydantic-ai``."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic_core import SchemaValidator, core_schema

from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.tools import MemoryTools

try:
    from pydantic_ai import Tool
except ModuleNotFoundError as error:
    raise missing_package("pydantic_ai", error) from error


def agent_tools(tools: MemoryTools) -> list[Tool[Any]]:
    """Return the tools for ``Agent(tools=…)``.

    pydantic-ai runs each in a thread. A tool returns its result as JSON data: a failure is reported
    to the model, never raised.
    """
    return [_tool_of(tools, definition) for definition in tools.definitions()]


def _tool_of(tools: MemoryTools, definition: dict[str, Any]) -> Tool[Any]:
    tool: Tool[Any] = Tool.from_schema(
        function=partial(_call, tools, definition["name"]),
        name=definition["name"],
        description=definition["description"],
        json_schema=definition["input_schema"],
    )
    # Such a tool takes any JSON, and a list for arguments ended the run with a TypeError. Refused
    # here, it is told to the model and asked for again, as of the framework's other tools.
    tool.function_schema.validator = SchemaValidator(core_schema.dict_schema())
    return tool


def _call(tools: MemoryTools, name: str, /, **arguments: object) -> dict[str, Any]:
    return tools.call(name, arguments).to_dict()
