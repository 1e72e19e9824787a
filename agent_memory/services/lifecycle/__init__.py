"""Archived, tidied away, undone."""
