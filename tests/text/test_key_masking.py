"""A user's key never comes out in what is said of a server's answer."""

from __future__ import annotations

import json
import traceback

import pytest

from agent_memory.runtime.api_client import hide_key, mask_key

KEYS = ["sk-test-0123456789abcdef", r"sk\'back\slash", 'sk-"quoted"', "sk-it's"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("quote", [str, repr, json.dumps, lambda key: repr([{"index": key}])])
def test_a_key_is_masked_however_it_is_quoted(key: str, quote: object) -> None:
    shown = mask_key(f"bad key {quote(key)}: no", key)  # type: ignore[operator]
    assert "***" in shown
    assert key not in shown
    assert key[3:] not in shown
    assert repr(key)[1:-1] not in shown


def test_no_key_masks_nothing() -> None:
    assert mask_key("as it is", "") == "as it is"


@pytest.mark.parametrize("key", KEYS)
def test_an_error_and_what_led_to_it_show_no_key(key: str) -> None:
    raised = ValueError({"index": key}, f"at {key}", 7)
    raised.__cause__ = KeyError(key)
    raised.message = f"of {key}"  # type: ignore[attr-defined]
    hide_key(raised, key)
    shown = "".join(traceback.format_exception(raised))
    assert shown.count("***") == 3
    assert key not in shown
    assert repr(key)[1:-1] not in shown
    assert raised.args[2] == 7
    assert raised.message == "of ***"  # type: ignore[attr-defined]
