"""Erased for good, and proved."""
