"""Extraction and decisions by rules, without a language model."""
