"""Files, locks and processes."""
