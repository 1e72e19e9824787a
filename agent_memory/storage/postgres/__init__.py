"""The PostgreSQL engine: the memories of many agents in one schema of a server's database."""
