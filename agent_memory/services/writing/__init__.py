"""Inserting and updating memories, and duplicates."""
