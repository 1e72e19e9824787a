"""The table ``rejections`` in SQLite: finds and repairs what another program wrote there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.storage.sql import rejections
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory.models.agent import Problem

_WRONG: Final = "FROM rejections WHERE length(words_hash) <> 32"


class RejectionTable(rejections.RejectionTable):
    """The table of rejected values, as hashes."""

    def find_problems(self) -> list[Problem]:
        """Report rows that reject nothing, because another program wrote no hash there."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - storing needs no model

        count = self._db.value(f"SELECT count(*) {_WRONG}")
        noun = counted(count, "row of rejections has", "rows of rejections have")
        detail = f"{noun} no hash of a value"
        return [Problem(kind="wrong_row", detail=detail)] if count else []

    def repair(self) -> None:
        """Delete such rows."""
        self._db.run(f"DELETE {_WRONG}")
