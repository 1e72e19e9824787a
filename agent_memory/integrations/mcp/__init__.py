"""One agent's memory as an MCP server, for Claude Desktop, Claude Code, Cursor, VS Code and others.

``run`` serves it over stdin and stdout, or over HTTP. This package implements the protocol over
stdio itself and needs nothing more installed: the package ``mcp`` alone takes a second to import,
and a host starts its servers anew each time. HTTP is left to that package (the extra ``mcp``). Both
offer what ``MemoryServer`` has.
"""

from agent_memory.integrations.mcp.memory_handle import ServedMemory
from agent_memory.integrations.mcp.project_server import ProjectServer
from agent_memory.integrations.mcp.run import run
from agent_memory.integrations.mcp.server import MemoryServer

__all__ = ["MemoryServer", "ProjectServer", "ServedMemory", "run"]
