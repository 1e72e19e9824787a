"""What can be told of a text alone. Pure."""
