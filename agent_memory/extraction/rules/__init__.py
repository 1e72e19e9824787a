"""Without a language model."""
