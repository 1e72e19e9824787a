"""What may come in, and what stays."""
