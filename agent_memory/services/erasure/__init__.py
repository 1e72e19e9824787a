"""Erasure for good, with proof."""
