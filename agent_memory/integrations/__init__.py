"""Adapters between agent frameworks and a memory; each module is imported only by its users."""
