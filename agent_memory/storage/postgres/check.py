"""Checks an agent's rows for drift between stored and derived data.

Pages and logs are the server's, and its own tools look for damage there. What this finds is caused
by a program that disabled triggers, or wrote to a table that follows another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.errors import opened_read_only
from agent_memory.models.agent import CheckReport, Problem
from agent_memory.storage.fingerprints import fingerprint_of
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.keyword_index import KeywordIndex
from agent_memory.storage.postgres.tables.agent import AgentTable
from agent_memory.storage.postgres.vector_index import VectorIndex
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.text.counts import counted

_PAGE: Final = 1_000
_MADE_OF_TAGS: Final = """
SELECT DISTINCT m.seq, lower(btrim(t.value #>> '{}') COLLATE "C") AS tag
FROM memories AS m CROSS JOIN LATERAL json_array_elements(m.tags::json) AS t
WHERE json_typeof(t.value) = 'string' AND btrim(t.value #>> '{}') <> ''"""
_COUNT_WRONG_TAGS: Final = f"""
SELECT count(*) FROM ({_MADE_OF_TAGS}) AS made FULL JOIN memory_tags AS k USING (seq, tag)
WHERE made.seq IS NULL OR k.seq IS NULL"""
_SELECT_TEXTS: Final = """
SELECT m.seq, m.content, m.user_id, m.run_id, f.seq, f.fingerprint, m.tags, m.timestamp, t.tokens
FROM memories AS m LEFT JOIN fingerprints AS f USING (agent_id, seq)
LEFT JOIN memory_text AS t USING (agent_id, seq)
WHERE m.seq > %s ORDER BY m.seq LIMIT %s"""
_COUNT_WRONG_WORDS: Final = """
SELECT count(*) FROM (
  SELECT w.word FROM memory_words AS w
  FULL JOIN (SELECT word, count(*) AS doc FROM memory_index GROUP BY word) AS i USING (word)
  WHERE w.doc IS DISTINCT FROM i.doc) AS wrong"""
_FORGET_WORDS: Final = (
    "UPDATE memory_text SET tokens = NULL",
    "DELETE FROM memory_index",
    "DELETE FROM memory_words",
    "DELETE FROM memory_index_size",
    "INSERT INTO memory_text (seq) SELECT seq FROM memories ON CONFLICT DO NOTHING",
)
_FORGET_FINGERPRINTS: Final = (
    "UPDATE fingerprints SET fingerprint = NULL",
    "INSERT INTO fingerprints (seq) SELECT seq FROM memories ON CONFLICT DO NOTHING",
)
_MAKE_TAGS: Final = (
    "DELETE FROM memory_tags",
    f"INSERT INTO memory_tags (seq, tag) {_MADE_OF_TAGS}",
)


class Check:
    """One check of an agent's rows."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._keywords = KeywordIndex(database)
        self._vectors = VectorIndex(database)
        self._agent = AgentTable(database)

    def report(self, *, repair: bool) -> CheckReport:
        """Find problems, repair them if requested, and report."""
        if repair and self._db.read_only:
            raise opened_read_only(self._db.location)
        with self._db.read() if self._db.read_only else self._db.write():
            problems = list(self._problems())
            if problems and repair:
                self._mend({problem.kind for problem in problems})
                left = {problem.detail for problem in self._problems()}
                problems = [
                    problem.model_copy(update={"repaired": problem.detail not in left})
                    for problem in problems
                ]
            count = int(self._db.value("SELECT count(*) FROM memories"))
            archived = int(self._db.value("SELECT count(*) FROM memories WHERE archived = 1"))
        return CheckReport(
            path=self._db.location,
            memory_count=count,
            problems=problems,
            archived_count=archived,
        )

    def _problems(self) -> Iterator[Problem]:
        if not self._db.read_only:
            self._keywords.catch_up()
        yield from self._agent.find_problems()
        if wrong := self._db.value(_COUNT_WRONG_TAGS):
            noun = counted(wrong, "row of memory_tags does", "rows of memory_tags do")
            detail = f"{noun} not match the memories"
            yield Problem(kind="wrong_tags", detail=detail)
        yield from self._problems_of_texts()
        if wrong := self._db.value(_COUNT_WRONG_WORDS):
            detail = (
                f"{counted(wrong, 'word has', 'words have')} a wrong count in the keyword index"
            )
            yield Problem(kind="stale_keyword_index", detail=detail)
        yield from self._vectors.find_problems()

    def _problems_of_texts(self) -> Iterator[Problem]:
        wrong_fingerprints = wrong_words = 0
        after = BEFORE_ALL
        while rows := self._db.rows(_SELECT_TEXTS, (after, _PAGE)):
            for _, content, user_id, run_id, has_one, fingerprint, *indexed in rows:
                is_right = fingerprint in (None, fingerprint_of(content, user_id, run_id))
                wrong_fingerprints += has_one is None or not is_right
                tags, timestamp, tokens = indexed
                if tokens is not None or not self._db.read_only:  # else it is not indexed yet
                    wrong_words += tokens != self._keywords.tokens_of(content, tags, timestamp)
            after = page_end(rows[-1][0], after=after)
        if wrong_fingerprints:
            detail = f"{wrong_fingerprints} fingerprints do not match the memories"
            yield Problem(kind="wrong_fingerprint", detail=detail)
        if wrong_words:
            detail = f"the keyword index does not match {wrong_words} of the memories"
            yield Problem(kind="stale_keyword_index", detail=detail)

    def _mend(self, kinds: set[str]) -> None:
        statements: list[str] = []
        if "wrong_tags" in kinds:
            statements += _MAKE_TAGS
        if "wrong_fingerprint" in kinds:
            statements += _FORGET_FINGERPRINTS
        if "stale_keyword_index" in kinds:
            statements += _FORGET_WORDS
        for sql in statements:
            self._db.run(sql)
        self._agent.repair()
        for model in self._vectors.models():
            if self._vectors.problems_of(model):
                self._vectors.repair_model(model)
