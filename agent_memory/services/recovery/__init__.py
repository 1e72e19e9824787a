"""Recovery of a file from a backup: restore and rebuild."""
