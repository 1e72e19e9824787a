"""Capture: what is worth keeping of what tools return and people say is stored by itself."""

from agent_memory.integrations.capture.capture import *  # noqa: F403
