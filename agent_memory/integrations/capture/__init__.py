"""Capturing by itself."""

from agent_memory.integrations.capture.capture import *  # noqa: F403
