"""What SQLite computes in memory for any engine: the words of texts, the cosines of vectors.

So every engine finds the same words, and the same cosines to the last digit. A connection made here
has no file.
"""
