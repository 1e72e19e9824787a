"""What SQLite computes in memory for every engine: the words of texts, the cosines of vectors.

So every engine finds the same words, and the same cosines to the last digit. The connections made
here have no file.
"""
