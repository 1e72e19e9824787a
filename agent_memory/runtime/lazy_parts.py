"""Parts of an object that are made, and their modules imported, when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801 - used as a decorator, like ``property``
    """A property that is computed when it is first read, and kept.

    Until Python 3.12 ``functools.cached_property`` holds one lock for all objects of a class while
    it computes: a child that another thread forked meanwhile waited for it for ever. Here two
    threads may compute at once; both get what the first one kept.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, whole: None, owner: type) -> Self: ...
    @overload
    def __get__(self, whole: object, owner: type) -> Value: ...
    def __get__(self, whole: object | None, owner: type) -> Self | Value:
        if whole is None:
            return self
        kept: Value = vars(whole).setdefault(self._name, self._compute(whole))
        return kept


def parts_made_of(*attributes: str, package: str) -> Callable[[str], Any]:
    """Return what declares such parts in a class: ``table: Table = part(".tables:Table")``.

    A part is an object of a class, made of these attributes of the whole. Its module is named
    relative to the ``package``.
    """

    def part(path: str) -> Any:  # noqa: ANN401 - the annotation in the class says what it is
        module, _, name = path.partition(":")

        def make(whole: object) -> object:
            kind: Callable[..., object] = getattr(import_module(module, package), name)
            return kind(*(getattr(whole, attribute) for attribute in attributes))

        return lazy_property(make)

    return part
