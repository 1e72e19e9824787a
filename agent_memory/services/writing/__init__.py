"""Storing: what is new, what repeats."""
