"""Coding agents and editors: answers their hooks, and registers this program in their settings."""
