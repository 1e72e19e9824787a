"""``python -m agent_memory``: the command line."""

from agent_memory.cli import main

if __name__ == "__main__":
    main()
