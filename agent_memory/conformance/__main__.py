"""``python -m agent_memory.conformance``."""

from agent_memory.conformance import main

if __name__ == "__main__":
    main()
