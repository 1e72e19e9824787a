"""Storage: the seam (engine, tables, queries, indexes, filters, records), and two engines.

``sqlite`` and ``postgres`` are the engines, ``sql`` has the SQL that their tables share, and
``in_memory`` what SQLite computes for both.
"""
