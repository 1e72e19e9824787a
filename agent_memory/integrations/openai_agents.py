"""The memory tools for OpenAI's Agents SDK. It needs the extra ``openai-agents``."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.tools import MemoryTools

try:
    from agents import FunctionTool
    from agents.tool_context import ToolContext
except ModuleNotFoundError as error:
    raise missing_package("openai_agents", error) from error


def function_tools(tools: MemoryTools) -> list[FunctionTool]:
    """Return the tools for ``Agent(tools=…)``.

    Each runs in a thread and returns its result as JSON: a failure is reported to the model, never
    raised.
    """
    return [
        FunctionTool(
            name=definition["name"],
            description=definition["description"],
            params_json_schema=definition["input_schema"],
            on_invoke_tool=partial(_call, tools, definition["name"]),
            strict_json_schema=False,  # optional arguments may be left out
        )
        for definition in tools.definitions()
    ]


async def _call(tools: MemoryTools, name: str, _: ToolContext[Any], arguments: str) -> str:
    result = await tools.acall(name, arguments)
    return json.dumps(result.to_dict(), ensure_ascii=False)
