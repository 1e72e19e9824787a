"""Automatic capture: stores what is worth keeping from tool output and conversation."""

from agent_memory.integrations.capture.capture import *  # noqa: F403
