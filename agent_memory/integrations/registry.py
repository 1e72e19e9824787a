"""The integrations: what each is for, which extra installs it, which entry points it has.

An integration is one module or folder beside this one, and one row of ``INTEGRATIONS``. The guide's
table and the message about a missing package are made from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agent_memory import ConfigurationError


@dataclass(frozen=True, slots=True)
class Integration:
    """A way in which programs that run agents use a memory."""

    name: str
    """The name of its module or folder."""
    host: str
    """What it is for."""
    summary: str
    guide: str = "inside-agents"
    """The topic of ``agent-memory guide`` that explains it."""
    extra: str = ""
    """The extra of agent-memory that installs what it needs."""
    packages: tuple[str, ...] = ()
    """The import names of what the extra installs; the first is the package's own."""
    entry_points: tuple[str, ...] = ()
    """Entry points of the group ``amplifier.modules``."""

    @property
    def row(self) -> str:
        """The row of this integration in the guide's table."""
        install = f"`pip install 'agent-memory[{self.extra}]'`" if self.extra else "nothing more"
        place = "this one" if self.guide == "inside-agents" else f"[{self.guide}]({self.guide}.md)"
        return f"| `{self.name}` | {self.host} | {self.summary} | {install} | {place} |"


INTEGRATIONS: Final = {
    row.name: row
    for row in (
        Integration("tools", "any framework", "tools that a model calls, and their results"),
        Integration("context", "any framework", "the text that a session begins with"),
        Integration("capture", "any framework", "stores what is worth keeping, by itself"),
        Integration(
            "identity", "any framework", "decides whose memory it is; opens it on first use"
        ),
        Integration(
            "hosts",
            "Claude Code, Codex, Gemini CLI, Cursor",
            "answers their hooks, edits their settings",
            guide="coding-agents",
        ),
        Integration(
            "langgraph",
            "LangGraph",
            "a store for `graph.compile(store=…)`",
            extra="langgraph",
            packages=("langgraph",),
        ),
        Integration(
            "anthropic_memory",
            "Anthropic's client",
            "the memory tool",
            extra="anthropic",
            packages=("anthropic",),
        ),
        Integration(
            "openai_agents",
            "OpenAI's Agents SDK",
            "tools for `Agent(tools=…)`",
            extra="openai-agents",
            packages=("agents",),
        ),
        Integration(
            "pydantic_ai",
            "pydantic-ai",
            "tools for `Agent(tools=…)`",
            extra="pydantic-ai",
            packages=("pydantic_ai",),
        ),
        Integration(
            "llama_index",
            "LlamaIndex",
            "a block of `Memory`",
            guide="frameworks",
            extra="llama-index",
            packages=("llama_index",),
        ),
        Integration(
            "google_adk",
            "Google's ADK",
            "a memory service for `Runner`",
            guide="frameworks",
            extra="google-adk",
            packages=("google",),
        ),
        Integration(
            "agent_framework",
            "Microsoft's Agent Framework",
            "a context provider for `Agent`",
            guide="frameworks",
            extra="agent-framework",
            packages=("agent_framework",),
        ),
        Integration(
            "mcp",
            "Claude, Cursor, VS Code",
            "a server of the Model Context Protocol (the extra is for HTTP only)",
            guide="mcp",
            extra="mcp",
            packages=("mcp", "anyio", "mcp_types", "starlette", "uvicorn"),
        ),
        Integration("ui", "people", "a page in the browser, on this machine", guide="page"),
        Integration(
            "sqlite_tools",
            "Datasette, sqlite-utils",
            "a plugin that opens files with vectors",
            guide="plain-sqlite",
        ),
        Integration("pyinstaller", "PyInstaller", "what a bundled program needs", guide="recipes"),
        Integration(
            "amplifier",
            "Amplifier",
            "four modules and a bundle",
            guide="amplifier",
            extra="amplifier",
            packages=("amplifier_core",),
            entry_points=(
                "tool-memory-semantic",
                "hooks-memory-capture",
                "hooks-memory-context",
                "context-memory-scratchpad",
            ),
        ),
    )
}
"""Each integration by its name."""


def missing_package(name: str, error: ModuleNotFoundError) -> Exception:
    """Return what to raise when an integration cannot be imported: how to install what it needs.

    If the package is installed but lacks another one, the error itself is returned.
    """
    integration = INTEGRATIONS[name]
    package = (error.name or "").partition(".")[0]
    if package not in integration.packages:
        return error
    return ConfigurationError(
        f"the package {package} is not installed: pip install 'agent-memory[{integration.extra}]'"
    )
