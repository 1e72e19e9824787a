"""Where memories are kept: the engines."""
