"""Editing JSON as text: what was not meant stays, byte for byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory import ValidationError
from agent_memory.integrations.hosts.json_text import JsonText

COMMENTED = """\
// my settings
{
\t"theme": "dark", // "not": "a key"
\t"hooks": {
\t\t/* runs
\t\t   first */
\t\t"Stop": [
\t\t\t{"hooks": [{"type": "command", "command": "say \\"done\\" // loudly"}]}, // keep
\t\t],
\t},
\t"last": [1, 2, /* three */ 3], // the end
}
"""


def test_values_are_put_beside_what_is_there() -> None:
    text = JsonText(COMMENTED, "settings.json")
    text.put(["hooks", "Stop", 1], {"hooks": []})
    text.put(["hooks", "Start", 0], {"a": 1})
    text.put(["servers", "memory"], {"command": "x"})
    assert text.text == COMMENTED.replace(
        "// keep\n", '// keep\n\t\t\t{\n\t\t\t\t"hooks": []\n\t\t\t}\n'
    ).replace(
        "\t\t],\n", '\t\t],\n\t\t"Start": [\n\t\t\t{\n\t\t\t\t"a": 1\n\t\t\t}\n\t\t]\n'
    ).replace(
        "// the end\n",
        '// the end\n\t"servers": {\n\t\t"memory": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n',
    )


def test_what_was_put_is_taken_away_again() -> None:
    text = JsonText(COMMENTED.replace("},\n}", "}\n}"), "settings.json")
    before = text.text
    text.put(["hooks", "Start", 0], {"a": 1})
    text.put(["servers", "memory"], {"command": "x"})
    text.remove(["hooks", "Start", 0])
    text.remove(["servers", "memory"])
    assert re.sub(",", "", text.text) == re.sub(",", "", before)
    assert text.data() == JsonText(before, "x").data()


ODD_LAYOUTS = (
    *("{}", "{}\n", '{"a": 1}', '{"a": {"b": 1}}', '{\n    "a": {"b": []}\n}\n'),
    '{\r\n  "a": [1]\r\n}\r\n',
)


@pytest.mark.parametrize("before", ODD_LAYOUTS)
def test_a_file_comes_back_byte_for_byte(before: str) -> None:
    text = JsonText(before, "x.json")
    text.put(["hooks", "Stop", 0], {"command": "x", "list": [1, {"y": None}]})
    text.put(["servers", "memory"], {"command": "x"})
    assert "\r" not in before or "\n" not in text.text.replace("\r\n", "")
    text.remove(["servers", "memory"])
    text.remove(["hooks", "Stop", 0])
    assert text.text == before


def test_a_value_is_replaced_in_its_place() -> None:
    text = JsonText('{"a": {"b": 1, "c": 2}, "d": 3}', "x.json")
    text.put(["a", "b"], [True])
    assert text.data() == {"a": {"b": [True], "c": 2}, "d": 3}
    assert text.text.endswith(', "c": 2}, "d": 3}')


def test_an_empty_file_and_a_byte_order_mark_are_no_errors() -> None:
    for before in ("", "\n", "\ufeff", '\ufeff{"a": 1}\n'):
        text = JsonText(before, "x.json")
        text.put(["b"], 2)
        assert text.value(["b"]) == 2


@pytest.mark.parametrize("wrong", ["[1]", '"x"', "{'a': 1}", '{"a": 1', "{a: 1}", "nul", '{"a":}'])
def test_what_is_no_json_object_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match=r"x\.json: .*nothing was changed"):
        JsonText(wrong, "x.json")


@pytest.mark.parametrize("blocked", ['{"hooks": 7}', '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_what_stands_in_the_way_is_refused(blocked: str) -> None:
    text = JsonText(blocked, "x.json")
    with pytest.raises(
        ValidationError, match=r"hooks.* is not (an object|a list): nothing was changed"
    ):
        text.put(["hooks", "Stop", 0], 1)
    assert text.text == blocked


def test_comments_keep_the_container_that_they_stand_in() -> None:
    text = JsonText('{\n  "hooks": {\n    // none yet\n    "Stop": [1]\n  }\n}\n', "x.json")
    text.remove(["hooks", "Stop", 0])
    assert text.text == '{\n  "hooks": {\n    // none yet\n  }\n}\n'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
LAYOUTS: tuple[dict[str, Any], ...] = ({}, {"indent": 2}, {"indent": "\t"}, {"ensure_ascii": False})


@given(st.dictionaries(st.text(max_size=5), values), st.sampled_from(LAYOUTS), values)
def test_any_object_takes_a_value_and_gives_it_back(
    data: dict[str, Any], layout: dict[str, Any], value: object
) -> None:
    data.pop("mcpServers", None)
    before = json.dumps(data, **layout)
    text = JsonText(before, "x.json")
    text.put(["mcpServers", "memory"], {"v": value})
    assert text.data() == {**data, "mcpServers": {"memory": {"v": value}}}
    assert list(text.data()) == [*data, "mcpServers"]
    text.remove(["mcpServers", "memory"])
    assert text.text == before
