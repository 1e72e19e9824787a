"""The tools that Anthropic's clients call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio.to_thread import run_sync

from agent_memory.integrations.anthropic_memory.commands import Commands

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession


class AgentMemoryTool(BetaAbstractMemoryTool):
    """Anthropic's memory tool with its files in an agent's memory.

    Pass it to ``client.beta.messages.tool_runner(tools=[AgentMemoryTool(memory)], …)``. ``memory``
    is open, and stays so; with a session of it (``memory.session(…)``) each user has their own
    files. ``cache_control`` is the client's.

    A file has at most 1,000,000 characters, any but NUL. It is one memory, found by
    ``AgentMemory.search`` by its words (if it has over 10,000 characters, by those that fit into a
    content); the model sees archived files too. Other memories of the agent are not files, and are
    left alone. A failure is ``ToolError`` with the message for the model, and changes nothing.

    A command is one transaction, except renaming a directory, whose files are moved one after the
    other. When several processes edit a file at once, no edit is lost. A directory exists as long
    as there is a file in it; its size is that of its files.
    """

    def __init__(
        self,
        memory: MemoryOrSession,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = Commands(memory)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with numbered lines, or the contents of a directory."""
        return self._commands.run("view", command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file that does not exist yet."""
        return self._commands.run("create", command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return self._commands.run("str_replace", command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""
        return self._commands.run("insert", command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a directory; ``AgentMemory.undo`` brings it back."""
        return self._commands.run("delete", command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a directory."""
        return self._commands.run("rename", command)

    def clear_all_memory(self) -> str:
        """Delete all files, and no other memory."""
        return self._commands.run("clear_all_memory")


class AsyncAgentMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client: each command runs in a thread."""

    def __init__(
        self,
        memory: MemoryOrSession,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = Commands(memory)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with numbered lines, or the contents of a directory."""
        return await run_sync(self._commands.run, "view", command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file that does not exist yet."""
        return await run_sync(self._commands.run, "create", command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once in a file."""
        return await run_sync(self._commands.run, "str_replace", command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines after a line."""
        return await run_sync(self._commands.run, "insert", command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a directory; ``AgentMemory.undo`` brings it back."""
        return await run_sync(self._commands.run, "delete", command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a directory."""
        return await run_sync(self._commands.run, "rename", command)

    async def clear_all_memory(self) -> str:
        """Delete all files, and no other memory."""
        return await run_sync(self._commands.run, "clear_all_memory")
