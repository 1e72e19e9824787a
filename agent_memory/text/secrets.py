"""Whether a text holds keys, tokens or passwords, and where. Nothing here keeps or shows one.

They are told by the formats of well-known services (``credential_formats``), or by what they are
called: ``password: …``, ``API_KEY=…``, ``{"client_secret": "…"}``. A value of the second sort must
look made up: an ordinary word, a placeholder and a variable's name are none. So a password that is
a plain word is not noticed in a text, nor is one that is not called so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from agent_memory.text.secret_patterns import FORMATS

_PASSWORD: Final = "password"  # noqa: S105 - what it is called
_KEY: Final = "API key or token"


class Span(NamedTuple):
    """Where a secret stands in a text, from ``start`` to before ``end``, and what it is."""

    start: int
    end: int
    kind: str


class Credentials:
    """Finds secrets by their formats and their names: the scanner that is used by default."""

    def find(self, text: str) -> list[Span]:
        """Return where secrets stand in a text, in order; they do not overlap."""
        return find(text)


def find(text: str, *, any_case: bool = False) -> list[Span]:
    """Return where secrets stand in a text; with ``any_case`` those whose case was changed too."""
    found = _by_format(text, any_case=any_case)
    found += _by_name(text)
    return joined(found) if len(found) > 1 else found


def masked(text: str) -> str:
    """Return a text with ``[masked: GitHub token]`` and the like in place of secrets."""
    return replaced(text, find(text), mask_of)


def replaced(text: str, spans: Iterable[Span], mask: Callable[[str], str]) -> str:
    """Return a text with spans replaced by the mask of their kind. They must be in order."""
    pieces = []
    done = 0
    for span in spans:
        pieces += [text[done : span.start], mask(span.kind)]
        done = span.end
    return "".join([*pieces, text[done:]])


def mask_of(kind: str) -> str:
    """Return what stands in place of a secret: no scanner of this library takes it for one."""
    return f"[masked: {kind}]"


def joined(found: Iterable[Span]) -> list[Span]:
    """Put spans in order and make one of those that overlap, of the kind that was found first."""
    ranked = sorted(enumerate(found), key=lambda it: it[1].start)
    made: list[tuple[int, Span]] = []
    for rank, span in ranked:
        if made and span.start < made[-1][1].end:
            other_rank, other = made[-1]
            kind = other.kind if other_rank < rank else span.kind
            joint = Span(other.start, max(other.end, span.end), kind)
            made[-1] = min(other_rank, rank), joint
        elif span.start < span.end:
            made.append((rank, span))
    return [span for _, span in made]


# By format ----------------------------------------------------------------------------------

_HINTS: Final = tuple((hint, number) for number, it in enumerate(FORMATS) for hint in it.hints)
_SHORTEST: Final = 20
"""Characters that every format but an address has at least, without white space between."""


def _by_format(text: str, *, any_case: bool) -> list[Span]:
    if "://" not in text and max(map(len, text.split()), default=0) < _SHORTEST:
        return []  # as most texts: looking for 80 hints takes four times as long
    hints = _folded_hints() if any_case else _HINTS
    hit = {number for hint, number in hints if hint in text}
    return [span for number in sorted(hit) for span in _spans(number, text, any_case=any_case)]


@cache
def _folded_hints() -> tuple[tuple[str, int], ...]:
    return tuple((hint.lower(), number) for hint, number in _HINTS)


@cache
def _pattern(number: int, *, any_case: bool) -> re.Pattern[str]:
    """Compile a pattern when a text first has its hint."""
    return re.compile(FORMATS[number].pattern, re.ASCII | (re.IGNORECASE if any_case else 0))


def _spans(number: int, text: str, *, any_case: bool) -> Iterator[Span]:
    for match in _pattern(number, any_case=any_case).finditer(text):
        group = match.lastindex or 0
        if not group or not _is_placeholder(match[group]):
            yield Span(*match.span(group), FORMATS[number].kind)


# By name ------------------------------------------------------------------------------------

_PASSWORDS: Final = (
    "password", "passwd", "passphrase", "passcode", "passwort", "mot de passe", "kennwort",
    "contraseña", "contrasena", "senha", "密码", "密碼", "口令", "пароль", "パスワード", "비밀번호",
)  # fmt: skip
_KEYS: Final = ("secret", "token", "credential", "credentials")
_WHOLE_WORDS: Final = ("pass", "pwd")
"""Those that are a password's name only where no letter stands before them."""
_OF_KEYS: Final = (
    "api", "access", "secret", "private", "encryption", "signing", "master", "account", "auth",
    "service", "shared", "client", "deploy", "license", "app",
)  # fmt: skip
"""What stands before "key" in the name of a secret one."""
_NAMES: Final = (*_PASSWORDS, *_WHOLE_WORDS, *_KEYS, "key", "bearer", "basic")


class _Name(NamedTuple):
    """A telling name in a text: where it ends, and what may be said with it."""

    start: int
    end: int
    is_password: bool
    is_bare: bool
    """Whether the value may follow without a sign between: ``Bearer …``."""


def _names(folded: str) -> Iterator[_Name]:
    """Yield the telling names in a text of small letters."""
    for word in _NAMES:
        start = folded.find(word)
        while start >= 0:
            end = start + len(word)
            head = folded[max(0, start - 40) : start]
            if _is_telling(word, head):
                is_bare = word in ("bearer", "basic") or head.endswith("authorization: ")
                yield _Name(start, end, word in _PASSWORDS or word in _WHOLE_WORDS, is_bare)
            start = folded.find(word, end)


def _is_telling(word: str, head: str) -> bool:
    """Return whether a word names a secret, given what stands before it."""
    if word == "key":
        return head.rstrip(" _.-").endswith(_OF_KEYS)
    if word == "basic":
        return head.rstrip(" \"':=").endswith("authorization")
    return word not in _WHOLE_WORDS or not head[-1:].isalpha()


# Of the same name: PASSWORD_1, api_key_prod.
_SUFFIX: Final = r"(?:_?\d{1,2}|[_-](?:prod|production|dev|test|stage|staging|live|value))?"
# Up to six words about whose it is may stand between a name and its value.
_WHOSE: Final = (
    r"(?:\s(?:for|of|on|in|at|für|von|vom|zu|du|de|del|para|pour|do|da)(?:\s[^\s:=]{1,30}){1,6}?)?"
)
_SIGN: Final = (
    r"(?:[\"'`]?\]?\s{0,3}(?::=|=>|->|==?|[:：])\s{0,3}"  # noqa: RUF001 - the colon of Chinese
    r"|\s(?:is|was|to|lautet|ist|est|es|é)(?:\s?:)?\s)"
)
_VALUE: Final = (
    r"(?:\"([^\"\n]{4,400})\"|'([^'\n]{4,400})'|`([^`\n]{4,400})`|[\"'`]?([^\s\"'`;]{6,4000}))"
)
_CURL_USER: Final = r"\s(?:-u|--user)[\s=][\"']?[^\s:'\"]{1,80}:"


@cache
def _tail() -> re.Pattern[str]:
    """Compile what follows a name: a sign, and the value."""
    return re.compile(_SUFFIX + _WHOSE + _SIGN + _VALUE, re.IGNORECASE)


@cache
def _bare_tail() -> re.Pattern[str]:
    """Compile what follows a name that its value follows at once, or after white space."""
    return re.compile(r"\s{0,3}" + _VALUE)


@cache
def _curl_user() -> re.Pattern[str]:
    return re.compile(_CURL_USER)


def _by_name(text: str) -> list[Span]:
    folded = _folded(text)
    found = [span for name in _names(folded) for span in _after(text, name)]
    if "curl" in folded:
        for match in _curl_user().finditer(text):
            found += _after(text, _Name(*match.span(), is_password=True, is_bare=True))
    return found


def _folded(text: str) -> str:
    """Return a text in small letters, each where it was."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(small if len(small := it.lower()) == 1 else it for it in text)


def _after(text: str, name: _Name) -> Iterator[Span]:
    """Yield where the value of a name stands, if there is one that looks like a secret."""
    tail = None if name.is_bare else _tail().match(text, name.end)
    if tail is None and (name.is_bare or _is_option(text, name.start)):
        tail = _bare_tail().match(text, name.end)
    if tail is None:
        return
    group = tail.lastindex or 0
    start, value = tail.start(group), tail[group]
    if group == 4:  # without quotes
        value = _unquoted(value)
    kind = _kind_of(value, is_password=name.is_password)
    if kind is not None:
        yield Span(start, start + len(value), kind)


def _is_option(text: str, start: int) -> bool:
    """Return whether a name is that of an option: ``--db-password VALUE``."""
    head = text[max(0, start - 40) : start]
    return head[head.rfind(" ") + 1 :].startswith("-")


_NEXT: Final = r"[&,][A-Za-z_][\w.-]*=|&(?:quot|amp|lt|gt|apos|#\d+)\b|,\"|\\n"


def _unquoted(value: str) -> str:
    """Cut off what follows a value that stands without quotes."""
    following = re.search(_NEXT, value)
    if following is not None:
        value = value[: following.start()]
    return value.rstrip(".,:)]}>\\")


# What looks made up -------------------------------------------------------------------------
# As texts: they are compiled, and kept by ``re``, when a telling name is first seen.

_PLACEHOLDER: Final = (
    r"(?i)^[<${%(\[]|^(.)\1*$|example|placeholder|change.?me|^your|your[_-]|redact|masked|dummy"
    r"|insert|todo|%[a-z]\b|xxx|\*\*\*|\.\.\.|…|environ|getenv|process\.env|^1password|^(?:passw(?:or)?d"
    r"|pass|pwd?|secret|token|test|user|none|null|true|false|undefined|required|optional|string"
    r"|hidden|unknown|empty|missing|invalid|incorrect|wrong)\d{0,3}$"
)
# Names, paths, addresses, calls, dates, amounts, algorithms.
_ORDINARY: Final = (
    r"(?i)^[~.]{0,2}/|://|^[a-z_]\w*(?:\.[a-z_]\w*)*\(|^[a-z_]\w*(?:\.[a-z_]\w*)+$|^\d{4}-\d\d-\d\d"
    r"|^\d+(?:\.\d+)?-?(?:h|s|ms|min|d|x|st|nd|rd|th|kb|mb|gb|[a-z]+s)$|^(?:mem|session)-"
    r"|^(?:sha-?\d|md5|argon2|pbkdf2|aes-?\d|rsa-?\d|base\d\d|oauth\d|utf-?\d|ed25519|[hre]s\d{3}"
    r"|x\.?509|v\d+(?:\.\d+)*$)"
)
_LOOKED_AT: Final = 200
"""Characters of a value that tell whether it is ordinary."""
_SYMBOL: Final = r"[!@#$%^&*+?~|]"
_KEY_TEXT: Final = r"[A-Za-z0-9_./+=~:%-]{16,}"
_PARTS: Final = r"[^A-Za-z0-9]+"


def kind_of(name: str, value: str) -> str | None:
    """Return what a value is that is called so in data, ``None`` if it is no secret."""
    for found in _names(_folded(name)):
        if found.end == len(name) and not found.is_bare:
            return _kind_of(value, is_password=found.is_password)
    return None


def _kind_of(value: str, *, is_password: bool) -> str | None:
    """Return what the value of a telling name is, ``None`` if it is no secret."""
    if is_password:
        return _PASSWORD if is_made_up_password(value) else None
    return _KEY if is_made_up_key(value) else None


def is_made_up_password(value: str) -> bool:
    """Return whether a value of a password's name looks like a password, not like a word."""
    if len(value) < 6 or " " in value or _is_ordinary(value):
        return False
    if value.isdigit():
        return True
    said = value.rstrip("!?")
    has_letter = any(map(str.isalpha, said))
    has_symbol = re.search(_SYMBOL, said) is not None
    return has_letter and (has_symbol or not _is_wordy(value))


def is_made_up_key(value: str) -> bool:
    """Return whether a value of a key's name looks like a key."""
    if _is_ordinary(value):
        return False
    if re.fullmatch(_KEY_TEXT, value):
        return len(set(value)) >= 8 and not _is_wordy(value)
    return len(value) >= 10 and is_made_up_password(value) and re.search(_SYMBOL, value) is not None


def _is_ordinary(value: str) -> bool:
    head = value[:_LOOKED_AT]
    return _is_placeholder(head) or re.search(_ORDINARY, head) is not None


def _is_placeholder(value: str) -> bool:
    return re.search(_PLACEHOLDER, value) is not None


def _is_wordy(value: str) -> bool:
    """Return whether a value is words and numbers and signs: none has letters and digits."""
    return all(part.isalpha() or part.isdigit() or not part for part in re.split(_PARTS, value))
