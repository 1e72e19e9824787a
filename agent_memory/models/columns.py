"""The columns of a memory: what reads them alone does without the models, and their cost."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = (
    "id", "content", "category", "tags", "kind", "importance", "memory_type", "timestamp",
    "updated_at", "last_accessed", "access_count", "created_by_session", "user_id", "run_id",
    "archived", "task_metadata", "metadata", "version",
)  # fmt: skip
"""The order of the columns and of exports, which compare by line. A new field comes last."""
ORIGINAL_CATEGORY: Final = "original_category"
"""The key of the metadata that keeps the category that a note came with, unknown here."""
