"""A key of the user's own, taken out of what a server is quoted with: some send it back."""

from __future__ import annotations

import json

MASK = "***"


def mask_key(text: str, key: str) -> str:
    """Return a text with ``***`` in the place of a key, also where Python or JSON escaped it.

    Mask before you shorten: the beginning of a key is a part of it.
    """
    forms = {key, repr(key)[1:-1], json.dumps(key)[1:-1]} if key else ()
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def hide_key(error: BaseException, key: str) -> None:
    """Take a key out of an error, and of those that led to it: a traceback shows them all."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    for each in chain:
        each.args = tuple(_mask(part, key) for part in each.args)
        for name, value in vars(each).items():
            if isinstance(value, str):
                setattr(each, name, mask_key(value, key))


def _mask(part: object, key: str) -> object:
    shown = part if isinstance(part, str) else repr(part)
    masked = mask_key(shown, key)
    return part if masked == shown else masked
