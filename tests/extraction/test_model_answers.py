"""Answers of language models: what is taken, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agent_memory.extraction.llm.answers import BadAnswer, json_object, parse

RIGHT: dict[str, Any] = {"facts": [{"text": 'a "b", } c', "n": [1, 2]}]}
TEXT = '{"facts": [{"text": "a \\"b\\", } c", "n": [1, 2]}]}'


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(TEXT, id="plain"),
        pytest.param(f"\n  {TEXT}\n", id="white space"),
        pytest.param(f"```json\n{TEXT}\n```", id="a fence"),
        pytest.param(f"```\n{TEXT}", id="half a fence"),
        pytest.param(f"Here is {{it}}:\n{TEXT}\nI hope that it's what you {{wanted}}.", id="prose"),
        pytest.param(TEXT.replace("2]}]}", "2,]},\n],\n}"), id="trailing commas"),
        pytest.param(f'<think>maybe {{"facts": []}}?</think>{TEXT}', id="thinking"),
        pytest.param(f"\ufeff{TEXT}", id="a byte order mark"),
    ],
)
def test_one_object_is_found(answer: str) -> None:
    assert json_object(answer) == RIGHT


@pytest.mark.parametrize(
    ("answer", "told", "is_truncated"),
    [
        pytest.param("", "is empty", False, id="empty"),
        pytest.param("null", "no JSON object", False, id="null"),
        pytest.param("I cannot help with that.", "no JSON object", False, id="a refusal"),
        pytest.param(f"[{TEXT}]", "a JSON list", False, id="a list"),
        pytest.param(f"[{TEXT}", "a JSON list", False, id="a list without an end"),
        pytest.param("[]", "no JSON object", False, id="an empty list"),
        pytest.param(f"{TEXT}\n{TEXT}", "2 JSON objects", False, id="two"),
        pytest.param(TEXT[:-1], "ends in the middle", True, id="no end"),
        pytest.param(TEXT[:20], "ends in the middle", True, id="inside a text"),
        pytest.param(f"```json\n{TEXT[:30]}\n```", "ends in the middle", True, id="cut in a fence"),
        pytest.param('{"a": 1, "a": 2}', "same key twice", False, id="a key twice"),
        pytest.param('{"a": NaN}', "NaN", False, id="NaN"),
        pytest.param("{'a': 1}", "no JSON object", False, id="Python"),
        pytest.param('{"a": 1 "b": 2}', "not JSON", False, id="no comma"),
        pytest.param('{"a": 1,, "b": 2}', "not JSON", False, id="two commas"),
        pytest.param('{"a": tru}', "not JSON", False, id="half a word"),
        pytest.param('{"a": "\n"}', "not JSON", False, id="a line break in a text"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "not JSON", False, id="a huge number"),
        pytest.param('{"a": ' * 50_000 + "1" + "}" * 50_000, "too deep", False, id="deep"),
        pytest.param(f"{TEXT}{' ' * 1_000_000}", "characters", False, id="too long"),
        pytest.param(None, "a NoneType, not a text", False, id="None"),
        pytest.param(b"{}", "a bytes, not a text", False, id="bytes"),
    ],
)
def test_anything_else_is_refused(answer: object, told: str, is_truncated: bool) -> None:
    with pytest.raises(BadAnswer, match=told) as raised:
        json_object(answer)
    assert raised.value.is_truncated is is_truncated
    assert len(str(raised.value)) < 200


class Shape(BaseModel):
    number: int
    texts: list[str]


def test_the_shape_is_checked() -> None:
    assert parse('{"number": 1, "texts": ["x"], "more": 2}', Shape) == Shape(number=1, texts=["x"])
    assert parse({"number": 1, "texts": []}, Shape).number == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"number": 1}', "texts: Field required"),
        ('{"number": "one", "texts": []}', "number: Input should be a valid integer"),
        ('{"number": 1, "texts": "x"}', "texts: Input should be a valid list"),
        ('{"number": 1, "texts": [1, 2, 3, 4]}', "texts.2: .*, and 1 more"),
        ("{}", "number: Field required; texts: Field required"),
    ],
)
def test_a_wrong_shape_is_told_without_the_answer(answer: str, told: str) -> None:
    with pytest.raises(BadAnswer, match=told) as raised:
        parse(answer, Shape)
    assert not raised.value.is_truncated
    assert "one" not in str(raised.value)
