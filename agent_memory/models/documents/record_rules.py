"""The rules for the parts of a record: UUIDs, embeddings, custom metadata (C, 14)."""

import math
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from agent_memory.models.fields import clean_metadata

MAX_RECORD_METADATA_DEPTH: Final = 5
"""Levels of nesting: the metadata itself is the first, and a list is a level too."""
MAX_RECORD_KEY_LENGTH: Final = 100
"""Characters."""
MAX_RECORD_TEXT_LENGTH: Final = 1_000
"""Characters of a text in the metadata."""
RESERVED_METADATA_KEYS: Final = frozenset(
    "user_id agent_id run_id created_at updated_at memory_type".split()
)
"""The record's own fields, beside its custom metadata."""

_UUID4: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)


def is_uuid4(text: object) -> bool:
    """Return whether a text is a UUID of version 4: in either case, with hyphens in place."""
    return isinstance(text, str) and _UUID4.fullmatch(text) is not None


def validate_embedding(values: object, dimensions: int | None = None) -> tuple[bool, str | None]:
    """Return whether an embedding is valid, and if not, why.

    It consists of finite numbers: ``dimensions`` of them if that is given, else at least one.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return False, f"Embedding is a {type(values).__name__}: give a list of numbers"
    count = 0
    for count, value in enumerate(values, 1):
        if isinstance(value, bool) or not isinstance(value, Real):
            return False, f"Embedding has a {type(value).__name__} in place {count}, not a number"
        if not _is_finite(value):
            return False, f"Embedding has {value!s:.20} in place {count}: it must be finite"
    if count == 0:
        return False, "Embedding is empty: give a list of numbers"
    if dimensions is not None and count != dimensions:
        return False, f"Embedding has {count:,} numbers: it must have {dimensions:,}"
    return True, None


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def clean_embedding(values: Any) -> list[float]:  # noqa: ANN401 - whatever was given
    """Return an embedding as plain numbers, or raise ``ValueError``."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    numbers = list(values) if is_list else values
    is_valid, reason = validate_embedding(numbers)
    if not is_valid:
        raise ValueError(reason)
    return [float(number) for number in numbers]


def validate_record_metadata(metadata: Mapping[str, Any]) -> tuple[bool, str | None]:
    """Return whether a record may have this custom metadata, and if not, why.

    It is JSON data: at most 5 levels deep, with keys of up to 100 characters, texts of up to 1,000,
    and no key that is reserved for the record's own fields (below the top level such keys are
    allowed).
    """
    try:
        clean_record_metadata(metadata)
    except ValueError as error:
        return False, str(error)
    return True, None


def clean_record_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return custom metadata as plain JSON data, or raise ``ValueError``."""
    if not isinstance(metadata, Mapping):
        kind = type(metadata).__name__
        raise ValueError(f"metadata is a {kind}: give a mapping")  # noqa: TRY004 - pydantic
    if reserved := sorted(RESERVED_METADATA_KEYS.intersection(metadata)):
        raise ValueError(
            f"metadata has the key {reserved[0]!r}, which is the record's own: use another name"
        )
    _refuse_beyond_limits(metadata, "metadata", 1)
    return clean_metadata(metadata)


def _refuse_beyond_limits(value: object, path: str, depth: int) -> None:
    """Refuse a value that is too deep or too long; ``path`` says where it is."""
    if isinstance(value, str) and len(value) > MAX_RECORD_TEXT_LENGTH:
        raise ValueError(
            f"{path:.150} has {len(value):,} characters: at most {MAX_RECORD_TEXT_LENGTH:,}"
            " are allowed"
        )
    if not isinstance(value, Mapping | list | tuple):
        return
    if depth > MAX_RECORD_METADATA_DEPTH:
        raise ValueError(f"{path:.150} is over {MAX_RECORD_METADATA_DEPTH} levels deep")
    if not isinstance(value, Mapping):
        for number, item in enumerate(value):
            _refuse_beyond_limits(item, f"{path}[{number}]", depth + 1)
        return
    for key, item in value.items():
        if isinstance(key, str) and len(key) > MAX_RECORD_KEY_LENGTH:
            raise ValueError(
                f"{path:.150} has a key of {len(key):,} characters ({key[:20]!r}…): at most"
                f" {MAX_RECORD_KEY_LENGTH} are allowed"
            )
        _refuse_beyond_limits(item, f"{path}.{key}", depth + 1)


Embedding = Annotated[list[float], BeforeValidator(clean_embedding)]
"""A field for a vector of finite numbers, of any length."""
CustomMetadata = Annotated[dict[str, Any], AfterValidator(clean_record_metadata)]
"""A field for metadata that ``validate_record_metadata`` accepts."""
