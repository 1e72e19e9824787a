"""JSON schemas of the tools' arguments, in the plain form that every model's API takes."""

from functools import cache
from typing import Any

from pydantic import BaseModel

_LEFT_OUT = ("title", "$defs")


@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema without references, titles and alternatives of ``null``.

    Some APIs know no ``$ref``; and that a field may be left out says more than that it may be null.
    It is always the same one: do not change it.
    """
    whole = model.model_json_schema()
    schema = _plain(whole, whole.get("$defs", {}))
    schema.pop("description", None)  # of the class, for those who read this code
    return schema


def _plain(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if (name := schema.get("$ref", "").rpartition("/")[2]) and name in definitions:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**definitions[name], **rest}, definitions)
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**options[0], **rest}, definitions)
    plain = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "properties" in plain:
        plain["properties"] = {
            name: _plain(inner, definitions) for name, inner in plain["properties"].items()
        }
    if "items" in plain:
        plain["items"] = _plain(plain["items"], definitions)
    return plain
