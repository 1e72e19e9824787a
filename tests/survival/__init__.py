"""What a memory must survive: faults of the disk, power cuts, kills, crowds, damage, fuzz.

``python -m tests.survival`` runs all of it, short, and prints a table; ``--full`` runs it longer.
"""
