"""Whom and what memories speak of."""
