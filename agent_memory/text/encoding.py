"""Turns bytes that another program stored as text, in any encoding, into text.

A Latin-1 file imported by the ``sqlite3`` shell leaves bytes in a column that are not UTF-8.
"""

from __future__ import annotations

import re
from typing import Final

_NOT_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_CUT_OFF: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
"""Only UTF-8 has this: in a run that is not valid as a whole, it is the sign of a damaged one."""


def decode_text(data: bytes) -> str:
    """Return any bytes as text from which the bytes can still be recognised.

    UTF-8 is decoded as such, and what can only be Windows-1252 (which includes Latin-1) as that. In
    a run of bytes that is neither, such as half a character, each byte is written as its number:
    ``<E2>``. ASCII is unchanged, so JSON decodes to the same whether whole or in parts.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces: list[str] = []
        end = 0
        for run in _NOT_ASCII.finditer(data):
            pieces += data[end : run.start()].decode(), _decode_run(run.group())
            end = run.end()
        return "".join(pieces) + data[end:].decode()


def _decode_run(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    if _CUT_OFF.search(data) is None:
        try:
            return data.decode("cp1252")
        except UnicodeDecodeError:
            pass
    text = data.decode(errors="surrogateescape")  # intact parts are kept
    return "".join(
        f"<{ord(letter) - 0xDC00:02X}>" if "\udc80" <= letter <= "\udcff" else letter
        for letter in text
    )
