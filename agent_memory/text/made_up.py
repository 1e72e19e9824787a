"""Whether what is called a password or a key looks made up, and is no word or placeholder."""

import re
from functools import cache
from typing import Final

# Texts: they are compiled when a telling name is first seen.

_PLACEHOLDER: Final = (
    r"(?i)^[<${%(\[]|^(.)\1*$|example|placeholder|change.?me|^your|your[_-]|redact|masked|dummy"
    r"|insert|todo|%[a-z]\b|xxx|\*\*\*|\.\.\.|…|environ|getenv|process\.env|^1password|^(?:passw(?:or)?d"
    r"|pass|pwd?|secret|token|test|user|none|null|true|false|undefined|required|optional|string"
    r"|hidden|unknown|empty|missing|invalid|incorrect|wrong)\d{0,3}$"
    r"|^(?:[a-z]{1,20}[_-]){1,5}password\d{0,3}$"
)
# Names, paths, addresses, calls, dates, amounts, algorithms.
_ORDINARY: Final = (
    r"(?i)^[~.]{0,2}/|://|^[a-z_]\w*(?:\.[a-z_]\w*)*\(|^[a-z_]\w*(?:\.[a-z_]\w*)+$|^\d{4}-\d\d-\d\d"
    r"|^\d+(?:\.\d+)?-?(?:h|s|ms|min|d|x|st|nd|rd|th|kb|mb|gb|[a-z]+s)$|^(?:mem|session)-"
    r"|^(?:sha-?\d|md5|argon2|pbkdf2|aes-?\d|rsa-?\d|base\d\d|oauth\d|utf-?\d|ed25519|[hre]s\d{3}"
    r"|x\.?509|v\d+(?:\.\d+)*$)"
)
_SYMBOL: Final = r"[!@#$%^&*+?~|]"
_KEY_TEXT: Final = r"[A-Za-z0-9_./+=~:%-]{16,}"
_SIGN_WITHIN: Final = r"\d[^\W\d_]|[!@#$%^*?]"
_ADDRESS_OR_TIME: Final = r"@[\w-]+\.\w|^[\d:.,-]+[A-Za-z]{0,3}$"
_PARTS: Final = r"[^A-Za-z0-9]+"


def is_made_up_password(value: str) -> bool:
    """Return whether the value of something called a password looks like one, not like a word."""
    if len(value) < 6 or " " in value or _is_ordinary(value):
        return False
    if value.isdigit():
        return True
    unexcited = value.rstrip("!?")
    has_letter = any(map(str.isalpha, unexcited))
    has_symbol = re.search(_SYMBOL, unexcited) is not None
    return has_letter and (has_symbol or not _is_wordy(value))


def is_made_up_in_pair(value: str) -> bool:
    """Return whether the second of two values looks like a password, whatever it is called.

    It has a letter behind a digit, or a sign: "page2", an address and a time are what they are.
    """
    if not is_made_up_password(value) or re.search(_ADDRESS_OR_TIME, value):
        return False
    return re.search(_SIGN_WITHIN, value.rstrip("!?")) is not None


def is_made_up_key(value: str) -> bool:
    """Return whether the value of something called a key looks like one."""
    if _is_ordinary(value):
        return False
    if re.fullmatch(_KEY_TEXT, value):
        return len(set(value)) >= 8 and not _is_wordy(value)
    return len(value) >= 10 and is_made_up_password(value) and re.search(_SYMBOL, value) is not None


def _is_ordinary(value: str) -> bool:
    head = value[:200]
    return is_placeholder(head) or re.search(_ORDINARY, head) is not None


def is_placeholder(value: str) -> bool:
    """Return whether a value stands for one: ``<your key>``, ``changeme``."""
    return _placeholder().search(value) is not None


@cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER)


def _is_wordy(value: str) -> bool:
    """Return whether a value is words and numbers and signs: none has letters and digits."""
    return all(part.isalpha() or part.isdigit() or not part for part in re.split(_PARTS, value))
