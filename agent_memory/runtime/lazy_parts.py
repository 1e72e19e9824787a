"""Parts of an object that are imported and made when they are first used."""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any


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

        return cached_property(make)

    return part
