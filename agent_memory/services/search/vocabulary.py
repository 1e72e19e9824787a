"""The words of a store, as far as a search may see the memories that contain them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from agent_memory.services.search.request import SearchRequest
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING
from agent_memory.storage.query_terms import names_of
from agent_memory.storage.records import Alternative, Term
from agent_memory.text.word_forms import without_accents, without_ending

MOST_ALTERNATIVES: Final = 8
"""The maximum number of forms of a word that are used: those in most memories."""
EXAMPLES: Final = 20
"""How many of the newest memories with a word are checked for how it is written."""

MOST_WITH_NAME: Final = 5_000
"""A word in more memories is not looked up as a name: FTS5 goes through all of them to the newest,
which took 0.6 ms for 60,000."""

_WORDS: Final = re.compile(r"\w+")

Alternatives = dict[str, tuple[Alternative, ...]]
"""The alternatives to terms, by the term's word."""


class Vocabulary:
    """The words of the store, as far as a search may see the memories that contain them."""

    def __init__(self, engine: Engine, request: SearchRequest) -> None:
        self._keywords = engine.keywords
        self._scope = EVERYTHING if request.owner is None else request.scope

    def known(self, terms: Sequence[Term]) -> dict[str, int]:
        """Return the terms' words that occur, and in how many memories."""
        words = [term.word for term in terms]
        if not self._scope.is_narrowing:
            counts = self._keywords.frequencies(terms)
            return {word: count for word, count in zip(words, counts, strict=True) if count}
        stored = self.counts(set(words), ())
        return {word: stored[word] for word in words if word in stored and self._is_readable(word)}

    def _is_readable(self, *words: str) -> bool:
        return not self._scope.is_narrowing or self.stands(Alternative(words, ""))

    def has(self, alternative: Alternative) -> bool:
        """Return whether known words occur in one memory, and for a phrase, adjacent."""
        return len(alternative.words) == 1 or self.stands(alternative)

    def stands(self, alternative: Alternative) -> bool:
        """Return whether an alternative occurs in a memory."""
        return bool(self._keywords.examples(alternative, self._scope, limit=1))

    def tokens(self, forms: Sequence[str]) -> list[str]:
        """Return forms as the index holds them."""
        return self._keywords.tokens(forms)

    def counts(self, words: Collection[str], prefixes: Iterable[str]) -> dict[str, int]:
        """Return how many memories have each word in ``words`` or with one of the prefixes."""
        return self._keywords.vocabulary(words, prefixes, self._scope)

    def commonest(
        self, alternatives: Iterable[Alternative], counts: Mapping[str, int], most: int
    ) -> tuple[Alternative, ...]:
        """Return the alternatives that occur in most memories, without repeats."""
        distinct = {alternative.words: alternative for alternative in alternatives}
        readable = [words for words in distinct if self._is_readable(*words)]
        readable.sort(key=lambda words: (-min(counts[word] for word in words), words))
        return tuple(distinct[words] for words in readable[:most])

    def written(self, word: str, forms: Iterable[str]) -> str | None:
        """Return the form in which a word occurs in a memory, perhaps with another ending.

        Stems are short: "aliver", one edit from "Oliver", has the stem of "alive".
        """
        texts = self._texts_with(word)
        for form in forms:
            bare = without_ending(form)
            if any(bare in text for text in texts):
                return form
        return None

    def is_written(self, phrase: Alternative, form: str) -> bool:
        """Return whether a phrase is written like this in a memory, perhaps with another ending."""
        texts = self._keywords.examples(phrase, self._scope, limit=EXAMPLES)
        return any(without_ending(form) in without_accents(text) for text in texts)

    def words_of(self, stem: str) -> set[str]:
        """Return the words of some memories that the index holds as a stem, without accents."""
        bare = without_accents(stem)
        # The index has "therapi" for "therapy".
        beginning = re.compile(rf"(?<![^\W_]){re.escape(bare[:-1])}[^\W_]*")
        texts = self._texts_with(stem)
        words = sorted({word for text in texts for word in beginning.findall(text)})
        stems = map(without_accents, self.tokens(words))
        return {word for word, other in zip(words, stems, strict=True) if other == bare}

    def is_name(self, token: str, written: str, count: int) -> bool:
        """Return whether some memories capitalize a word in mid-sentence, and none writes it small.

        ``written`` is the word in lower case, ``count`` in how many memories it occurs: in none or
        in very many it is taken for no name.
        """
        if not 0 < count <= MOST_WITH_NAME:
            return False
        texts = self._examples(token)
        name = written.capitalize()
        if not any(name in names_of(text) for text in texts if name in text):
            return False
        return not any(written in _WORDS.findall(text) for text in texts if written in text)

    def names(self, token: str, beginning: str) -> set[str]:
        """Return the words of some memories that the index holds as a token, as written there."""
        starting = re.compile(rf"(?<![^\W_]){re.escape(beginning)}[^\W_]*", re.IGNORECASE)
        words = sorted({word for text in self._examples(token) for word in starting.findall(text)})
        tokens = self.tokens(words)
        return {word for word, other in zip(words, tokens, strict=True) if other == token}

    def _texts_with(self, word: str) -> list[str]:
        return [without_accents(text) for text in self._examples(word)]

    def _examples(self, word: str) -> list[str]:
        return self._keywords.examples(Alternative((word,), ""), self._scope, limit=EXAMPLES)
