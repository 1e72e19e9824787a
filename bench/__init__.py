"""Benchmarks: recall and speed. Run them from the checkout."""
