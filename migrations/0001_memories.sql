CREATE TABLE memories (
  -- What the agent remembers. This table is the truth: the indexes and tags follow it by triggers.
  -- A row needs nothing but its content:
  --   INSERT INTO memories (content) VALUES ('Prefer PostgreSQL for new projects');
  -- Times are UTC text of one width, so that the order of the text is the order of time.

  -- Row number, never used twice: nothing kept about a deleted memory can pass to another one.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The name that users see: 'mem-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('mem-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  -- The text itself.
  content TEXT NOT NULL
    CONSTRAINT content_has_1_to_10000_characters_and_no_nul
    CHECK (length(trim(content)) > 0 AND length(content) <= 10000 AND instr(content, char(0)) = 0),
  -- preference, decision, discovery, pattern, task, bugfix, note, question, insight, or the agent's own.
  category TEXT NOT NULL DEFAULT 'note',
  -- JSON list of lower-case words, such as ["database"].
  tags TEXT NOT NULL DEFAULT '[]'
    CONSTRAINT tags_is_a_json_list CHECK (json_valid(tags) AND json_type(tags) = 'array'),
  -- How long it is meant to live.
  kind TEXT NOT NULL DEFAULT 'learning'
    CONSTRAINT kind_is_core_learning_or_task CHECK (kind IN ('core', 'learning', 'task')),
  -- How much it matters.
  importance TEXT NOT NULL DEFAULT 'medium'
    CONSTRAINT importance_is_high_medium_or_low CHECK (importance IN ('high', 'medium', 'low')),
  -- What sort of record it is.
  memory_type TEXT NOT NULL DEFAULT 'STANDARD'
    CONSTRAINT memory_type_is_standard_procedural_or_graph
    CHECK (memory_type IN ('STANDARD', 'PROCEDURAL', 'GRAPH')),
  -- When it happened or was learned: 2026-01-28T12:00:00.000000Z.
  timestamp TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT timestamp_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(timestamp, 1, 19), '+0 days') IS substr(timestamp, 1, 19)
      AND substr(timestamp, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  -- When this row last changed. Accesses are not changes.
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  -- When a search last gave it as a good answer; NULL for never.
  last_accessed TEXT
    CONSTRAINT last_accessed_is_like_2026_01_28T12_00_00_000000Z
    CHECK (last_accessed IS NULL OR (strftime('%Y-%m-%dT%H:%M:%S', substr(last_accessed, 1, 19), '+0 days') IS substr(last_accessed, 1, 19)
      AND substr(last_accessed, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')),
  -- How often a search gave it as a good answer.
  access_count INTEGER NOT NULL DEFAULT 0
    CONSTRAINT access_count_is_not_negative CHECK (access_count >= 0),
  -- The conversation or run that stored it; 'sqlite3' for a row written by hand.
  created_by_session TEXT NOT NULL DEFAULT 'sqlite3',
  -- Whom it is about; NULL for nobody in particular.
  user_id TEXT,
  -- The run that it belongs to, if any.
  run_id TEXT,
  -- 1 for a memory that is kept but left out of searches.
  archived INTEGER NOT NULL DEFAULT 0
    CONSTRAINT archived_is_0_or_1 CHECK (archived IN (0, 1)),
  -- Of a task: JSON object with status, completed_at, blockers, outcome.
  task_metadata TEXT
    CONSTRAINT task_metadata_is_a_json_object
    CHECK (task_metadata IS NULL OR (json_valid(task_metadata) AND json_type(task_metadata) = 'object')),
  -- JSON object of anything else.
  metadata TEXT NOT NULL DEFAULT '{}'
    CONSTRAINT metadata_is_a_json_object CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  -- 1 when stored, one more with each change.
  version INTEGER NOT NULL DEFAULT 1
    CONSTRAINT version_is_positive CHECK (version >= 1)
) STRICT;

CREATE INDEX memories_by_session  -- what was said just before and after
  ON memories (created_by_session, timestamp, seq);

CREATE INDEX memories_by_time  -- the newest, and spans of dates
  ON memories (timestamp, seq);

CREATE TRIGGER memories_keep_their_id BEFORE UPDATE OF id, seq ON memories
WHEN NEW.id IS NOT OLD.id OR NEW.seq IS NOT OLD.seq BEGIN
  SELECT RAISE(ABORT, 'the id and seq of a memory cannot change: delete it and store it anew');
END;
