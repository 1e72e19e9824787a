-- The agent that this file belongs to. One row.
CREATE TABLE agent (
  only_row             INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT there_is_one_agent CHECK (only_row = 1),
  agent_id             TEXT NOT NULL
                       CONSTRAINT agent_id_is_1_to_64_of_letters_digits_hyphen_underscore
                       CHECK (length(agent_id) BETWEEN 1 AND 64 AND agent_id NOT GLOB '*[^A-Za-z0-9_-]*'),
  created_at           TEXT NOT NULL,               -- as memories.timestamp is written, and so are the other times
  last_accessed        TEXT NOT NULL,               -- the last store, change or search
  storage_backend      TEXT NOT NULL DEFAULT 'file' -- "file": search by keyword; "vector": by meaning too
                       CONSTRAINT storage_backend_is_known CHECK (storage_backend IN ('file', 'vector')),
  migration_date       TEXT,                        -- when it moved to "vector"
  total_queries        INTEGER NOT NULL DEFAULT 0,
  total_query_ms       REAL NOT NULL DEFAULT 0,     -- over total_queries: the mean latency
  embeddings_generated INTEGER NOT NULL DEFAULT 0,
  scratchpad_promotions INTEGER NOT NULL DEFAULT 0,
  config               TEXT NOT NULL DEFAULT '{}'   -- JSON object: the settings that differ from the defaults
                       CONSTRAINT config_is_a_json_object CHECK (json_valid(config) AND json_type(config) = 'object'),
  migration            TEXT                         -- JSON object: backup_path, can_rollback, migration_duration_seconds
                       CONSTRAINT migration_is_a_json_object CHECK (migration IS NULL OR json_valid(migration))
) STRICT;
