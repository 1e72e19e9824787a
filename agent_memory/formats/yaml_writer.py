"""YAML out: values as text that every YAML reader, of 1.1 and of 1.2, reads as the same data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from json import JSONEncoder
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.models.times import format_briefly

_MAX_PLAIN_KEY: Final = 1000  # of 1,024 characters, past which YAML needs a "?" before a key

# Characters that JSON leaves as they are, but YAML treats as line breaks or refuses.
_ODD: Final = "\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_NOT_IN_YAML: Final = re.compile(f"[{_ODD}]")
_NOT_IN_BLOCK: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_ODD}]")
# What JSON writes and YAML may read differently; a text with it is checked closely.
_NOT_AS_JSON: Final = re.compile(f"[{_ODD}]|[0-9]e[-+]?[0-9]|NaN|Infinity")
_PLAIN_NAME: Final = re.compile("[a-z][a-z_]*")
_NO_NAMES: Final = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _time_of(value: object) -> str:
    if isinstance(value, datetime):
        return format_briefly(value)
    raise TypeError(f"a {type(value).__name__} is not JSON data")


_to_json: Final = JSONEncoder(ensure_ascii=False, default=_time_of).encode


def quoted(text: str) -> str:
    """Write a text in double quotes, on one line.

    Half of a surrogate pair, which YAML cannot hold, becomes U+FFFD.
    """
    return _NOT_IN_YAML.sub(_escape, _to_json(text))


def flow(value: object, *, compact: bool = False) -> str:
    """Write JSON data on one line; a time becomes ISO 8601 text.

    ``compact`` leaves out the spaces in lists and mappings. Raises ``RecursionError`` for data that
    is nested hundreds deep.
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        return f'"{_time_of(value)}"'
    written = to_json(value) if compact else _to_json(value)
    is_long = len(written) > _MAX_PLAIN_KEY
    if _NOT_AS_JSON.search(written) or (is_long and _may_have_long_key(value)):
        return _flow(value, "" if compact else " ")
    return written


def fields(values: Mapping[str, object]) -> str:
    """Write a mapping on one line; names that are plain words are not quoted."""
    return "{" + ", ".join(f"{name(key)}{flow(value)}" for key, value in values.items()) + "}"


@lru_cache(256)
def name(key: str) -> str:
    """Write a key and its colon, without quotes if every reader takes it as text."""
    if key not in _NO_NAMES and _PLAIN_NAME.fullmatch(key):
        return f"{key}: "
    return _key(key)


def block(text: str, indent: str) -> str:
    """Write a text of several lines as a block below its key; any other text in quotes.

    ``indent`` goes before each line; it is two spaces more than the indent of the key.
    """
    if "\n" not in text or not text.strip() or _NOT_IN_BLOCK.search(text):
        return quoted(text)
    # Without an explicit indent, it is that of the first line, with all of its spaces.
    header = "|2" if text[0] in " \t\n" else "|"
    if text.endswith("\n"):
        lines = text[:-1].split("\n")
        header += "" if lines[-1] else "+"
    else:
        lines = text.split("\n")
        header += "-"
    return "\n".join([header, *(indent + line if line else "" for line in lines)])


def _flow(value: object, space: str) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        items = (_key(key, space) + _flow(item, space) for key, item in value.items())
        return "{" + f",{space}".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + f",{space}".join(_flow(item, space) for item in value) + "]"
    return _to_json(value)


def _may_have_long_key(value: object) -> bool:
    if isinstance(value, Mapping):
        # An escape turns one character into six.
        return any(
            6 * len(key) > _MAX_PLAIN_KEY or _may_have_long_key(item) for key, item in value.items()
        )
    return isinstance(value, list | tuple) and any(map(_may_have_long_key, value))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _key(key: str, space: str = " ") -> str:
    text = quoted(key)
    return f"? {text} : " if len(text) > _MAX_PLAIN_KEY else f"{text}:{space}"


def _float(number: float) -> str:
    # YAML 1.1 reads 1e-07 as text: it needs the point. And it writes infinity as .inf.
    text = repr(number)
    if "n" in text:
        return text.replace("inf", ".inf").replace("nan", ".nan")
    return text if "." in text else text.replace("e", ".0e")
