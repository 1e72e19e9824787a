"""The hosts: programs that run hooks and MCP servers, and where and how to register with each.

A host is one row of ``HOSTS``. A hook starts for every prompt, so nothing slow is imported here: no
Pydantic, no ``dataclasses``, no ``pathlib``, no annotations as texts.
"""

from typing import Final, NamedTuple

SERVER: Final = "agent-memory"
"""The name of the MCP server in every host's settings."""
HOOK_TOOL: Final = "memory_hook"
"""The server's tool that hooks call. It is in no list, so no model sees it."""


class Event(NamedTuple):
    """An event of a host that a hook answers."""

    name: str
    """The host's name for it."""
    kind: str
    """``start`` of a session, ``prompt``, ``tool`` (one has returned), ``turn`` (the agent has
    answered) or ``summary`` (the conversation was compacted)."""
    matcher: str = ""
    """A regular expression of the host's that selects tools."""
    in_background: bool = False
    """The host does not wait for it."""
    by_server: tuple[str, ...] = ()
    """The names of the input fields that the host passes to the running server instead of starting
    a process. Empty if it starts one."""


class ConfigFile(NamedTuple):
    """A host's file that an installation changes."""

    path: str
    """Relative to the host's folder, or to a project's."""
    key: str
    """The key of the object in it that has the hooks, or the servers by name."""


class Host(NamedTuple):
    """A program that runs hooks, or MCP servers, or both."""

    name: str
    title: str
    folder: str
    """The folder of a user's settings; ``~`` is their home."""
    server: ConfigFile
    """The file of a user's MCP servers."""
    project_server: ConfigFile | None = None
    """The file of a project's MCP servers; ``None`` if it has none."""
    hooks: ConfigFile | None = None
    """The file of a user's hooks; ``None`` if it runs none."""
    project_hooks: ConfigFile | None = None
    events: tuple[Event, ...] = ()
    folder_variable: str = ""
    """The environment variable that moves the folder."""
    project_variable: str = ""
    """The environment variable that has a hook's project."""
    project_argument: str = "."
    """The project that the server gets: ``.``, or a placeholder that the host replaces by its
    folder."""
    hook_form: str = "groups"
    """``groups`` with a matcher and handlers each, or ``flat`` handlers."""
    answer_form: str = "hookSpecificOutput"
    """The object that has what is added to the context, or ``flat``."""
    most_characters: int = 10_000
    """The most characters that a hook may add to the context."""
    milliseconds: bool = False
    """Whether a hook's time limit is in milliseconds and not in seconds."""
    answers_always: bool = False
    """Whether to answer with an empty object if there is nothing to say."""
    server_type: str = ""
    """The ``type`` of a server's entry."""
    advice: tuple[str, ...] = ()
    """What the user still has to do."""

    def event(self, name: str) -> Event | None:
        """Return the event that the host calls by this name, in any case."""
        named = name.lower()
        return next((event for event in self.events if event.name.lower() == named), None)


_RESTART: Final = "Running sessions do not see it: start a new one."
_TRUST: Final = (
    "Codex does not run a hook until you trust it: start `codex`, type `/hooks`, and trust"
    " those of agent-memory. If they change, trust them again."
)
_TRUSTED_FOLDERS: Final = (
    "Gemini CLI runs servers and hooks only in folders that you trust: use /permissions there."
)
_CLAUDE_TOOLS: Final = "Bash|Task|Agent|mcp__.*"
# Files that tools read remain; the output of commands and other servers is lost.

HOSTS: Final = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "Claude Code",
            folder="~/.claude",
            folder_variable="CLAUDE_CONFIG_DIR",
            server=ConfigFile("../.claude.json", "mcpServers"),
            project_server=ConfigFile(".mcp.json", "mcpServers"),
            hooks=ConfigFile("settings.json", "hooks"),
            project_hooks=ConfigFile(".claude/settings.local.json", "hooks"),
            events=(
                Event("SessionStart", "start"),
                Event("UserPromptSubmit", "prompt", by_server=("prompt", "source")),
                Event("PostToolUse", "tool", _CLAUDE_TOOLS, in_background=True),
                Event("Stop", "turn", by_server=("last_assistant_message",)),
                Event("PostCompact", "summary", by_server=("compact_summary",)),
            ),
            project_variable="CLAUDE_PROJECT_DIR",
            server_type="stdio",
            advice=(_RESTART, "`/hooks` and `/mcp` in a session show what runs."),
        ),
        Host(
            "codex",
            "Codex",
            folder="~/.codex",
            folder_variable="CODEX_HOME",
            server=ConfigFile("config.toml", "mcp_servers"),
            project_server=ConfigFile(".codex/config.toml", "mcp_servers"),
            hooks=ConfigFile("hooks.json", "hooks"),
            project_hooks=ConfigFile(".codex/hooks.json", "hooks"),
            events=(
                Event("SessionStart", "start"),
                Event("UserPromptSubmit", "prompt", by_server=("prompt",)),
                Event("PostToolUse", "tool", "Bash|mcp__.*"),
                Event("Stop", "turn", by_server=("last_assistant_message",)),
            ),
            advice=(
                _TRUST,
                _RESTART,
                "If Codex is too old for `mcp_tool` hooks, it warns about them: update it then.",
            ),
        ),
        Host(
            "gemini",
            "Gemini CLI",
            folder="~/.gemini",
            server=ConfigFile("settings.json", "mcpServers"),
            project_server=ConfigFile(".gemini/settings.json", "mcpServers"),
            hooks=ConfigFile("settings.json", "hooks"),
            project_hooks=ConfigFile(".gemini/settings.json", "hooks"),
            events=(
                Event("SessionStart", "start"),
                Event("BeforeAgent", "prompt"),
                Event("AfterTool", "tool", "run_shell_command|mcp_.*"),
                Event("AfterAgent", "turn"),
            ),
            project_variable="GEMINI_PROJECT_DIR",
            milliseconds=True,
            answers_always=True,
            advice=(_TRUSTED_FOLDERS, _RESTART),
        ),
        Host(
            "cursor",
            "Cursor",
            folder="~/.cursor",
            server=ConfigFile("mcp.json", "mcpServers"),
            project_server=ConfigFile(".cursor/mcp.json", "mcpServers"),
            hooks=ConfigFile("hooks.json", "hooks"),
            project_hooks=ConfigFile(".cursor/hooks.json", "hooks"),
            events=(
                Event("sessionStart", "start"),
                Event("beforeSubmitPrompt", "prompt"),
                Event("afterShellExecution", "tool"),
                Event("afterAgentResponse", "turn"),
            ),
            project_argument="${workspaceFolder}",
            hook_form="flat",
            answer_form="flat",
            advice=("Restart Cursor; Settings > Hooks and Settings > MCP show what runs.",),
        ),
        Host(
            "claude-desktop",
            "Claude Desktop",
            folder="{applications}/Claude",
            server=ConfigFile("claude_desktop_config.json", "mcpServers"),
            project_argument="",
            advice=("Quit Claude Desktop and start it again.",),
        ),
        Host(
            "vscode",
            "VS Code",
            folder="{applications}/Code/User",
            server=ConfigFile("mcp.json", "servers"),
            project_server=ConfigFile(".vscode/mcp.json", "servers"),
            project_argument="${workspaceFolder}",
            server_type="stdio",
            advice=("VS Code asks whether you trust the server when it first starts it.",),
        ),
    )
}
"""Each host by its name."""
