"""Where agents' frameworks meet a memory: each module is imported by whoever needs it."""
