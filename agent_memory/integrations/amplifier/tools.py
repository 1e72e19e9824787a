"""``tool-memory-semantic``: the tools for an agent's memory, as Amplifier tools."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from agent_memory import MAX_SEARCH_LIMIT, AgentMemory, AgentMemoryError
from agent_memory.integrations.amplifier.protocol import Cleanup, Coordinator, ToolResult
from agent_memory.integrations.amplifier.shared_memory import Membership, is_whole, join, logger
from agent_memory.integrations.tools import MOST_RESULTS, TOOLS, MemoryTools, Tool

__amplifier_module_type__ = "tool"


class MemoryTool:
    """One tool: Amplifier's interface to ``MemoryTools``.

    ``most_results`` is the most that a search or a list returns, 1 to 100.
    """

    def __init__(self, tool: Tool, membership: Membership, most_results: int) -> None:
        self.name: Final = tool.name
        self.description: Final = tool.description
        self.input_schema: Final = copy.deepcopy(tool.input_schema)
        self._membership = membership
        self._most_results = most_results
        limit = self.input_schema["properties"].get("limit")
        if limit is not None:
            limit["maximum"] = most_results
            limit["default"] = min(limit["default"], most_results)

    async def execute(self, input: Mapping[str, Any]) -> ToolResult:  # noqa: A002 - the protocol's
        """Run the tool outside the event loop. Never raises: a failure is in the result."""
        tools = MemoryTools(self._memory(), most_results=self._most_results)
        result = await tools.acall(self.name, _without_orchestration(input))
        if result.success:
            return ToolResult(success=True, output=result.data)
        return ToolResult(success=False, error=result.error)

    def _memory(self) -> Any:  # noqa: ANN401 - an opener, or what raises in its place
        try:
            return self._membership.opener()
        except AgentMemoryError as error:
            missing = error  # the name of an except clause does not outlive it

        def refuse() -> AgentMemory:
            raise missing

        return refuse


def _without_orchestration(arguments: object) -> dict[str, Any]:
    """Return the model's arguments, without those that orchestrators add (``_tool_call_id``)."""
    if not isinstance(arguments, Mapping):
        return {}
    return {name: value for name, value in arguments.items() if not str(name).startswith("_")}


async def mount(coordinator: Coordinator, config: Mapping[str, Any] | None = None) -> Cleanup:
    """Mount the tools. Nothing is opened before one of them is used.

    ``config`` may have the options of the memory (``shared_memory.OPTIONS``), ``tools``, a list of
    the names to mount instead of all, and ``max_query_results``, the most that a search or a list
    returns (default 20, at most 100).
    """
    membership, rest = join(coordinator, config)
    known = [tool.name for tool in TOOLS]
    chosen = rest.pop("tools", None)
    if chosen is not None and not isinstance(chosen, list):
        logger.warning("tools must be a list of names: ignored")
    names = chosen if isinstance(chosen, list) else known
    most = rest.pop("max_query_results", MOST_RESULTS)
    if not is_whole(most) or not 1 <= most <= MAX_SEARCH_LIMIT:
        logger.warning("max_query_results must be a whole number from 1 to 100: ignored")
        most = MOST_RESULTS
    for name in (*rest, *(name for name in names if name not in known)):
        logger.warning("tool-memory-semantic: unknown setting or tool %.80r", name)
    for tool in TOOLS:
        if tool.name in names:
            mounted = MemoryTool(tool, membership, most)
            await coordinator.mount("tools", mounted, name=mounted.name)
    return membership.leave
