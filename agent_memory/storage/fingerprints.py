"""Fingerprints: numbers used to find memories that say nearly the same."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from agent_memory.text.normalize import exact_form, near_form


class DuplicateCandidate(NamedTuple):
    """A memory that may say the same; ``tags`` are JSON.

    ``timestamp`` is when it was learned, ``recalled_at`` when it was last returned, if known.
    """

    row_id: int
    memory_id: str
    content: str
    user_id: str | None
    run_id: str | None
    category: str
    tags: str
    timestamp: str
    recalled_at: str | None


def fingerprint_of(content: str, user_id: str | None, run_id: str | None) -> int:
    """Return the number shared by near duplicates about the same user, of the same run.

    Only the library computes it: if the triggers used a function of ours, no other program could
    write to the file. A release that changes the normal forms must set all fingerprints to NULL.
    """
    parts = (near_form(exact_form(content)), user_id or "", run_id or "")
    digest = hashlib.blake2b("\x00".join(parts).encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
