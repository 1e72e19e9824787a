"""Coding agents and editors: their hooks answered, and this program registered in their files."""
