"""SHA-256 for processes that answer one question: loading OpenSSL, as ``hashlib`` does, takes 3 ms.

Python's own implementation gives the same digests. Like ``random`` in the standard library, this
tries it first; for large amounts of data ``hashlib`` is faster.
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
