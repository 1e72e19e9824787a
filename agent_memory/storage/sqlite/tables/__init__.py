"""One module a table: its SQL, and nothing else."""
