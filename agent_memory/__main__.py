"""The command `agent-memory`, and ``python -m agent_memory``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    # Nothing of what is imported is ever garbage: to look for it there takes a tenth of a command,
    # and as much again at the exit. ``commands`` enables it when the command is there.
    gc.disable()
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are imported: ``commands`` handles it in a command
        if sys.stderr:
            sys.stderr.write("\ninterrupted: nothing was left half done\n")
        sys.exit(130)
    finally:
        gc.freeze()


def _run(words: list[str]) -> None:
    # A host waits for its hooks at every prompt: they do without the command line's imports.
    if words[:1] == ["hook"] and "--help" not in words and "-h" not in words:
        from agent_memory.integrations.hosts.hook import main as run  # noqa: PLC0415 - see above

        run(words[1:])
    if not {"search", "recent", "context"}.isdisjoint(words):
        from agent_memory.cli.plain_reads import answer  # noqa: PLC0415 - see above

        if answer(words):
            return
    from agent_memory.cli.commands import main as run_command_line  # noqa: PLC0415 - see above

    run_command_line()


if __name__ == "__main__":
    main()
