"""The guides that are generated on demand: every command's help, every public name."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pprint import pformat
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel

import agent_memory
from agent_memory.models.record import Record

_PAGE_WIDTH: Final = 80
_PARTS: Final = {
    "api": "The library",
    "embeddings": "Embedders",
    "extraction": "Language models and messages",
    "models": "What goes in and comes out",
    "errors": "Errors",
    "runtime": "Places of files",
    "services": "Texts for a model",
    "text": "Texts that say the same",
}
"""The folders that define public names, in the order of the reference, with its headings."""
_MODULE: Final = re.compile(r"\b(?:\w+\.)+(?=\w)")
_QUOTED: Final = re.compile(r"``(.+?)``", re.DOTALL)
_EXAMPLE: Final = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


# Commands -----------------------------------------------------------------------------------------


def commands_text(program: click.Command) -> str:
    """Return the help page of a program and of each of its commands, as Markdown."""
    context = _context(program, "agent-memory", None)
    return "\n".join(_help_pages(program, context, level=2))


def _help_pages(command: click.Command, context: click.Context, *, level: int) -> Iterator[str]:
    heading = "#" * min(level, 3)
    yield f"{heading} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) and not inner.hidden:
                yield from _help_pages(inner, _context(inner, name, context), level=level + 1)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # As wide as click makes a page in a terminal of 80 columns or more.
    settings = {**command.context_settings, "terminal_width": _PAGE_WIDTH - 2}
    return click.Context(command, parent, name, **settings)


# Public names -------------------------------------------------------------------------------------


def reference_text() -> str:
    """Return a description of each public name, from its docstring, as Markdown."""
    modules: dict[str, str] = vars(agent_memory)["_MODULES"]
    parts: dict[str, list[str]] = {part: [] for part in _PARTS}
    for name, module in modules.items():
        parts[module.partition(".")[0]].append(name)
    return "\n".join(
        _part(heading, sorted(parts[part], key=str.lower)) for part, heading in _PARTS.items()
    )


def _part(heading: str, names: list[str]) -> str:
    return "\n".join([f"## {heading}\n", *(entry for name in names for entry in _entry(name))])


def _entry(name: str) -> Iterator[str]:
    """Yield a public name's heading, signature and docstring, then its fields and methods."""
    value = getattr(agent_memory, name)
    yield f"### {name}\n"
    if not callable(value):
        yield _code(f"{name} = {pformat(value, width=_PAGE_WIDTH - 10, sort_dicts=False)}")
        yield _markdown(_constant_docstring(name))
    elif not inspect.isclass(value):
        yield from _function(name, value)
    else:
        yield from _class(name, value)


def _class(name: str, kind: type) -> Iterator[str]:
    bases = [base.__name__ for base in kind.__mro__[1:] if _is_public(base)]
    is_called = not issubclass(kind, (enum.Enum, BaseModel, BaseException))
    if is_called and not getattr(kind, "_is_protocol", False):
        yield _code(_signature(name, kind))
    yield _markdown(kind.__doc__)
    if bases:
        yield f"A subclass of `{bases[0]}`, which documents the rest.\n"
    if issubclass(kind, enum.Enum):
        yield "\n".join(f"- `{name}.{member.name}`: `{member.value}`" for member in kind) + "\n"
    if issubclass(kind, BaseModel) and (fields := list(_fields(kind))):
        yield "\n".join(fields) + "\n"
    if isinstance(code := vars(kind).get("code"), str):
        yield f"Its `code` is `{code}`.\n"
    for method, member in _members(kind):
        yield f"#### {name}.{method}\n"
        if isinstance(member, (classmethod, staticmethod)):
            yield from _function(method, member.__get__(None, kind))
        elif inspect.isfunction(member):
            yield from _function(method, member)
        else:
            yield _markdown(member.__doc__)


def _is_public(kind: type) -> bool:
    return getattr(agent_memory, kind.__name__, None) is kind


def _own(kind: type) -> list[type]:
    """Return a class and its bases that are not public; their members are listed with it."""
    ours = [
        base
        for base in kind.__mro__
        if base.__module__.startswith("agent_memory.") and base is not Record
    ]
    public = {base for parent in ours[1:] if _is_public(parent) for base in parent.__mro__}
    return [base for base in ours if base not in public]


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods and properties of a class, in source order."""
    members: dict[str, Any] = {}
    for base in reversed(_own(kind)):
        members |= vars(base)
    for name, member in members.items():
        is_told = inspect.isroutine(member) or isinstance(member, property)
        if is_told and member.__doc__ and not name.startswith("_"):
            yield name, member


def _fields(model: type[BaseModel]) -> Iterator[str]:
    inherited = {
        name
        for base in model.__mro__[1:]
        if issubclass(base, BaseModel) and _is_public(base)
        for name in base.model_fields
    }
    for name, field in model.model_fields.items():
        if name not in inherited:
            default = (
                ""
                if field.is_required() or field.default_factory
                else f" = {_plain(field.default)}"
            )
            yield f"- `{name}: {_type(field.annotation)}{default}`"


def _function(name: str, function: Any) -> Iterator[str]:
    awaited = "async " if inspect.iscoroutinefunction(function) else ""
    yield _code(awaited + _signature(name, function))
    yield _markdown(function.__doc__)


def _signature(name: str, function: Any) -> str:
    """Return a signature on one line if it fits, otherwise with one line per parameter."""
    signature = inspect.signature(function)
    result = signature.return_annotation
    returned = (
        "" if result is signature.empty or inspect.isclass(function) else f" -> {_type(result)}"
    )
    parameters = [part for part in _parameters(signature) if part != "self"]
    line = f"{name}({', '.join(parameters)}){returned}"
    if len(line) <= _PAGE_WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parameters), f"){returned}"])


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        text = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_plain(parameter.default)}"
        yield text


def _type(annotation: object) -> str:
    """Return a type as in the source: without the modules of its names, and without validators."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, str) or origin is Annotated:
        return annotation if isinstance(annotation, str) else _type(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_type, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin and arguments:
        return f"{_type(origin)}[{', '.join(map(_type, arguments))}]"
    names = {type(None): "None", ...: "..."}
    return names.get(annotation) or _MODULE.sub(
        "", getattr(annotation, "__name__", str(annotation))
    )


def _plain(default: object) -> str:
    """Return a default as in the source; a function without a name is not worth showing."""
    if inspect.isroutine(default):
        return default.__name__ if default.__name__.isidentifier() else "..."
    return repr(default.value if isinstance(default, enum.Enum) else default)


def _constant_docstring(name: str) -> str:
    """Return the text below a constant in its module; the object itself has no docstring."""
    module = sys.modules[f"agent_memory.{vars(agent_memory)['_MODULES'][name]}"]
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
            match following:
                case ast.Expr(ast.Constant(str(text))):
                    return text
    return ""


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _markdown(docstring: str | None) -> str:
    """Return a docstring as Markdown: names as code, examples as blocks."""
    text = _QUOTED.sub(r"`\1`", inspect.cleandoc(docstring or ""))
    return _EXAMPLE.sub(lambda example: _code(example[0]).rstrip("\n"), text) + "\n"
