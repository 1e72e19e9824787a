"""A page on this machine that shows a memory: a server based on Python's own, and what it serves.

``run`` implements ``agent-memory ui``. The page requests data as JSON (``reads``, ``writes``), and
only requests that ``admission`` lets in are answered.
"""
