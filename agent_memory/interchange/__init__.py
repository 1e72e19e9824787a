"""Formats that memories come in and leave in."""
