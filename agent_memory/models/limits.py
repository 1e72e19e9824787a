"""The limits, defaults, file names and variables of the environment that documents A to E set."""

from __future__ import annotations

import re
from typing import Final

QDRANT_CONFIG: Final = {
    "collection_name": "memories",
    "vectors_config": {"size": 1536, "distance": "Cosine"},
}
"""A vector collection, as the JSON that Qdrant takes. Nothing here needs it."""

ROOT_VARIABLE: Final = "AGENT_MEMORY_ROOT"
AGENT_VARIABLE: Final = "AGENT_MEMORY_AGENT"
SESSION_VARIABLE: Final = "AGENT_MEMORY_SESSION"
EMBEDDER_VARIABLE: Final = "AGENT_MEMORY_EMBEDDER"
DEFAULT_MEMORY_ROOT: Final = "~/.amplifier/memory"
SERVER_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+://")
"""How an address begins that may be a root, and is no directory: ``postgresql://``, for one."""
SCRATCHPAD_FILENAME: Final = "scratchpad.yaml"
VECTOR_DB_FILENAME: Final = "memories.db"
METADATA_FILENAME: Final = "metadata.json"
BACKUP_SUFFIX: Final = ".backup"
EVENTS_FILENAME: Final = "events.jsonl"
HOOKS_FOLDER: Final = "hooks"
"""Where hooks of coding agents keep what they need between two processes, in an agent's folder."""
HEARD_FILENAME: Final = "heard.jsonl"
"""What they have heard, in that folder, until it is stored."""

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
"""Of the gate: the share of the best similarity of a query that a good answer has."""

DEFAULT_MIGRATION_THRESHOLD: Final = 5_000
"""Memories from which on a move to semantic search is suggested."""
MIGRATION_BATCH_SIZE: Final = 100
"""Texts embedded at a time."""
