"""Backups, checks, repairs."""
