"""A page on this machine that shows a memory: a server of Python's own, and what it serves.

``run`` is what ``agent-memory ui`` does. The page asks for data as JSON (``reads``, ``writes``),
and nothing is answered that ``admission`` does not let in.
"""
