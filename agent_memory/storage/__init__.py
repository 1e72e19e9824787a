"""Storage: the seam (engine, tables, indexes, filters, records), and SQLite behind it."""
