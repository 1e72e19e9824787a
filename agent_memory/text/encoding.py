"""Bytes that another program stored as text, in whatever encoding, made into a text.

A Latin-1 file that the ``sqlite3`` shell imported leaves bytes in a column that are no UTF-8.
"""

from __future__ import annotations

import re
from typing import Final

_NOT_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_CUT_OFF: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
"""What only UTF-8 has: in a run that is none as a whole, the sign of a damaged one."""


def decode_text(data: bytes) -> str:
    """Return a text of any bytes, from which the bytes can be told again.

    What is UTF-8 is read as such, and what can only be Windows-1252 (of which Latin-1 is a part)
    as that. Of a run of bytes that is neither, such as a character that was cut in two, each is
    written as its number: ``<E2>``. ASCII stays, so of JSON the parts are decoded as the whole.
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
    text = data.decode(errors="surrogateescape")  # what is whole in it stays
    return "".join(
        f"<{ord(letter) - 0xDC00:02X}>" if "\udc80" <= letter <= "\udcff" else letter
        for letter in text
    )
