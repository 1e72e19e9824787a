"""SHA-256 where a process lives for one question: OpenSSL, which ``hashlib`` loads, takes 3 ms.

Python's own implementation gives the same digests. Like ``random`` of the standard library, this
asks for it first; for much data ``hashlib`` is faster.
"""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found]  # since Python 3.12
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256


def sha256_hex(data: bytes) -> str:
    """Return the digest as hexadecimal digits."""
    return str(sha256(data).hexdigest())
