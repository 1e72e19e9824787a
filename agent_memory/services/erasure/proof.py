"""The proof of an erasure: the raw bytes of files, searched for pieces of what was erased.

Text that other memories contain as well is no leftover: a piece found is looked up in the tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from agent_memory.runtime.files import translated_errors
from agent_memory.runtime.lazy_parts import lazy_property
from agent_memory.services.erasure.byte_search import READ_LENGTH, Chunks, Pieces, finder
from agent_memory.storage.change_records import ErasedText
from agent_memory.storage.engine import Engine
from agent_memory.storage.opening import file_storage

_SHORTEST: Final = 8
"""The minimum bytes of a text that does not occur by chance in numbers and vectors."""
_SHORTEST_WORD: Final = 5
"""The minimum characters of a word that occurs nowhere else."""
_MOST_PLACES: Final = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is left: by file, the offsets, and the ``places`` that are not memories.

    ``also_in`` has the memories that contain a piece of a content, and how many pieces.
    """

    left: dict[Path, list[int]]
    places: list[str] = field(default_factory=list)
    also_in: Counter[str] = field(default_factory=Counter)

    def lines(self, *, besides: Collection[Path]) -> list[str]:
        """Return a line for each piece that is left, in all files except ``besides``."""
        lines = [f"{place} contains part of the erased text" for place in self.places]
        for path, offsets in self.left.items():
            if path not in besides:
                lines += [
                    f"{path}, byte {at:,}: part of the erased text" for at in offsets[:_MOST_PLACES]
                ]
                if len(offsets) > _MOST_PLACES:
                    lines.append(f"{path}: {len(offsets) - _MOST_PLACES:,} more parts")
        return lines


class Proof:
    """Searches files one after the other, and judges what it found.

    ``files`` and ``bytes`` count what was searched.
    """

    def __init__(self, erased: ErasedText) -> None:
        self.files = 0
        self.bytes = 0
        self._erased = erased
        self._seen: dict[Path, dict[bytes, int]] = {}
        self._of_contents: set[bytes] = set()

    def look_through_store(self, engine: Engine) -> None:
        """Search an open store and its log, from which the rows were removed."""
        others = Pieces(_other_texts(engine, self._erased))
        for part in engine.files.raw_parts():
            chunks = partial(engine.files.raw, part, READ_LENGTH)
            self._look_through(part, chunks)
            self._seen[part].update(others.find(chunks))

    def look_through_rows(self, engine: Engine) -> None:
        """Search for contents in the rows of a store that is not a file."""
        self._of_contents.update(self._contents.find(partial(_rows_in_chunks, engine)))
        self.bytes += sum(map(len, _rows_in_chunks(engine)))

    def look_through_copy(self, path: Path) -> None:
        """Search for contents in a file without opening it as a store. Raises ``StorageError``."""
        self._look_through(path, partial(file_storage().raw_of_file, path, READ_LENGTH))

    def _look_through(self, path: Path, chunks: Chunks) -> None:
        offsets = self._contents.find(chunks)
        self._of_contents.update(offsets)
        self._seen[path] = offsets
        self.files += 1
        with translated_errors(path):
            self.bytes += path.stat().st_size

    @lazy_property
    def _contents(self) -> Pieces:
        texts = (form for text in self._erased.contents for form in _forms(text))
        return Pieces(text for text in texts if len(text) >= _SHORTEST)

    def judge(self, engine: Engine) -> Verdict:
        """Return the pieces that no table accounts for."""
        pieces = self._of_contents.union(*self._seen.values())
        places: list[str] = []
        also_in: Counter[str] = Counter()
        accounted: set[bytes] = set()
        if not pieces:
            return Verdict({})
        look = finder(pieces)
        for kind, name, text in engine.erasure.remaining_texts():
            here = look(text.lower()).keys()
            of_contents = len(here & self._of_contents)
            if kind == "memory" and of_contents:
                also_in[name] += of_contents
            if kind == "place" and of_contents:
                places.append(name)
            accounted |= here
        if pieces - accounted:
            for vector in engine.erasure.remaining_vectors():
                accounted |= look(vector.lower()).keys()
        left = {
            path: sorted(at for piece, at in offsets.items() if piece not in accounted)
            for path, offsets in self._seen.items()
        }
        return Verdict({path: at for path, at in left.items() if at}, places, also_in)


def _rows_in_chunks(engine: Engine) -> Iterator[bytes]:
    """Yield all texts of the rows, as if read from a file of them."""
    waiting = bytearray()
    for _, _, text in engine.erasure.remaining_texts():
        waiting += text
        while len(waiting) >= READ_LENGTH:
            yield bytes(waiting[:READ_LENGTH])
            del waiting[:READ_LENGTH]
    yield bytes(waiting)


def _other_texts(engine: Engine, erased: ErasedText) -> Iterator[bytes]:
    """Yield other traces of a memory than its contents: tags, metadata, words, vectors."""
    for text in erased.strings:
        once = _escaped(text)
        # In the history, metadata are JSON inside JSON. Another program may write ASCII only.
        forms = (text, once, _escaped(once), json.dumps(text)[1:-1])
        yield from (form for form in map(_bytes, forms) if len(form) >= _SHORTEST)
    yield from erased.vectors
    yield from map(_bytes, _words(engine, erased))


def _words(engine: Engine, erased: ErasedText) -> set[str]:
    """Return the words that no memory has any more: as the index holds them, and as written."""
    written: dict[str, set[str]] = {}
    for text in erased.contents | erased.strings:
        readable = text.encode(errors="replace").decode()
        for word, form in engine.words(readable):
            written.setdefault(word, set()).add(form)
    unused = engine.erasure.unused_words(written)
    forms: Iterable[str] = (form for word in unused for form in (word, *written[word]))
    return {form for form in forms if len(form) >= _SHORTEST_WORD}


def _forms(text: str) -> set[bytes]:
    """Return a content as the table has it, and as the history has it: inside JSON."""
    return {_bytes(text), _bytes(_escaped(text))}


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _bytes(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can have
        return text.encode(errors="replace")
