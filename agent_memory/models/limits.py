"""The limits, defaults, file names and environment variables that documents A to E define."""

from __future__ import annotations

import re
from typing import Final

QDRANT_CONFIG: Final = {
    "collection_name": "memories",
    "vectors_config": {"size": 1536, "distance": "Cosine"},
}
"""A vector collection as JSON for Qdrant. The library itself does not use it."""

ROOT_VARIABLE: Final = "AGENT_MEMORY_ROOT"
AGENT_VARIABLE: Final = "AGENT_MEMORY_AGENT"
SESSION_VARIABLE: Final = "AGENT_MEMORY_SESSION"
EMBEDDER_VARIABLE: Final = "AGENT_MEMORY_EMBEDDER"
DEFAULT_MEMORY_ROOT: Final = "~/.amplifier/memory"
SERVER_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+://")
"""The beginning of a root that is an address and not a directory, such as ``postgresql://``."""
SCRATCHPAD_FILENAME: Final = "scratchpad.yaml"
VECTOR_DB_FILENAME: Final = "memories.db"
METADATA_FILENAME: Final = "metadata.json"
BACKUP_SUFFIX: Final = ".backup"
BACKUPS_FOLDER: Final = "backups"
EVENTS_FILENAME: Final = "events.jsonl"
HOOKS_FOLDER: Final = "hooks"
"""The folder, inside an agent's, for what hooks of coding agents keep between processes."""
HEARD_FILENAME: Final = "heard.jsonl"
"""The file in that folder for what hooks have heard, until it is stored."""

MAX_MEMORY_CONTENT_LENGTH: Final = 10_000
"""Characters (code points) in a memory's content."""
MIN_SCRATCHPAD_SIZE: Final = 10
DEFAULT_SCRATCHPAD_SIZE: Final = 50
MAX_SCRATCHPAD_SIZE: Final = 100
"""Entries."""
MAX_TAGS_PER_MEMORY: Final = 20
MAX_TAG_LENGTH: Final = 50
"""Characters."""

DEFAULT_SEARCH_LIMIT: Final = 5
MAX_SEARCH_LIMIT: Final = 100
DEFAULT_SIMILARITY_THRESHOLD: Final = 0.75
"""The gate: a good answer has at least this share of the query's best similarity."""

DEFAULT_MIGRATION_THRESHOLD: Final = 5_000
"""The number of memories from which a migration to semantic search is suggested."""
MIGRATION_BATCH_SIZE: Final = 100
"""Texts embedded per batch."""
