"""Shapes that documents A and C name."""
