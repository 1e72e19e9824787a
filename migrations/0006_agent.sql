CREATE TABLE agent (
  -- The agent that this file belongs to, in the one row. Times are written like memories.timestamp.
  only_row INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT there_is_one_agent CHECK (only_row = 1),
  agent_id TEXT NOT NULL
    CONSTRAINT agent_id_has_1_to_64_letters_digits_hyphens_and_underscores
    CHECK (length(agent_id) BETWEEN 1 AND 64 AND agent_id NOT GLOB '*[^A-Za-z0-9_-]*'),
  created_at TEXT NOT NULL,
  last_accessed TEXT NOT NULL,  -- the last store, change or search
  -- 'file': search by keyword; 'vector': by meaning too.
  storage_backend TEXT NOT NULL DEFAULT 'file'
    CONSTRAINT storage_backend_is_known CHECK (storage_backend IN ('file', 'vector')),
  migration_date TEXT,          -- when it moved to 'vector'
  total_queries INTEGER NOT NULL DEFAULT 0,
  total_query_ms REAL NOT NULL DEFAULT 0,  -- divided by total_queries: the mean latency
  embeddings_generated INTEGER NOT NULL DEFAULT 0,
  scratchpad_promotions INTEGER NOT NULL DEFAULT 0,
  -- JSON object of the settings that differ from the defaults.
  config TEXT NOT NULL DEFAULT '{}'
    CONSTRAINT config_is_a_json_object CHECK (json_valid(config) AND json_type(config) = 'object'),
  -- JSON object of the move to 'vector': backup_path, can_rollback, migration_duration_seconds.
  migration TEXT
    CONSTRAINT migration_is_json CHECK (migration IS NULL OR json_valid(migration))
) STRICT;
