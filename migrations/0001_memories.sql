-- The memories themselves. This table is the truth; every other table but "agent" and
-- "history" can be rebuilt from it. A row needs nothing but its content:
--   INSERT INTO memories (content) VALUES ('Prefer PostgreSQL for new projects');
-- Times are UTC text of one width, YYYY-MM-DDTHH:MM:SS.ffffffZ, so that text order is time order.
CREATE TABLE memories (
  seq                INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice, so that no index row can pass to another memory
  id                 TEXT NOT NULL UNIQUE                -- the name that users see, "mem-" and 12 hex digits unless given
                     DEFAULT ('mem-' || lower(hex(randomblob(6))))
                     CONSTRAINT id_is_1_to_128_of_letters_digits_and_punctuation
                     CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  content            TEXT NOT NULL                       -- what is remembered
                     CONSTRAINT content_is_1_to_10000_characters_without_nul
                     CHECK (length(trim(content)) > 0 AND length(content) <= 10000 AND instr(content, char(0)) = 0),
  category           TEXT NOT NULL DEFAULT 'note',       -- preference, decision, discovery, pattern, task, bugfix, note, question, insight, or the agent's own
  tags               TEXT NOT NULL DEFAULT '[]'          -- JSON list of lower-case words; memory_tags follows it
                     CONSTRAINT tags_is_a_json_list CHECK (json_valid(tags) AND json_type(tags) = 'array'),
  kind               TEXT NOT NULL DEFAULT 'learning'    -- how long it is meant to live
                     CONSTRAINT kind_is_known CHECK (kind IN ('core', 'learning', 'task')),
  importance         TEXT NOT NULL DEFAULT 'medium'
                     CONSTRAINT importance_is_known CHECK (importance IN ('high', 'medium', 'low')),
  memory_type        TEXT NOT NULL DEFAULT 'STANDARD'
                     CONSTRAINT memory_type_is_known CHECK (memory_type IN ('STANDARD', 'PROCEDURAL', 'GRAPH')),
  timestamp          TEXT NOT NULL                       -- when it happened or was learned
                     DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
                     CONSTRAINT timestamp_is_utc_of_fixed_width
                     CHECK (timestamp GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  updated_at         TEXT NOT NULL                       -- when this row last changed; accesses do not count
                     DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
                     CONSTRAINT updated_at_is_utc_of_fixed_width
                     CHECK (updated_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  last_accessed      TEXT                                -- when a search last returned it as a good answer; NULL for never
                     CONSTRAINT last_accessed_is_utc_of_fixed_width
                     CHECK (last_accessed GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  access_count       INTEGER NOT NULL DEFAULT 0          -- how often a search returned it as a good answer
                     CONSTRAINT access_count_is_not_negative CHECK (access_count >= 0),
  created_by_session TEXT NOT NULL DEFAULT 'sqlite3',    -- the conversation or run that stored it
  user_id            TEXT,                               -- whom it is about; NULL for nobody in particular
  run_id             TEXT,                               -- the run that it belongs to
  archived           INTEGER NOT NULL DEFAULT 0          -- 1: kept, and left out of searches
                     CONSTRAINT archived_is_0_or_1 CHECK (archived IN (0, 1)),
  task_metadata      TEXT                                -- of a task: JSON object with status, completed_at, blockers, outcome
                     CONSTRAINT task_metadata_is_a_json_object
                     CHECK (task_metadata IS NULL OR json_valid(task_metadata) AND json_type(task_metadata) = 'object'),
  metadata           TEXT NOT NULL DEFAULT '{}'          -- JSON object of anything else
                     CONSTRAINT metadata_is_a_json_object CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  version            INTEGER NOT NULL DEFAULT 1          -- 1 when stored, one more with each change
) STRICT;

-- The memories said just before and after one, in its session: what a search looks at next.
CREATE INDEX memories_by_session ON memories (created_by_session, timestamp, seq);
-- The newest memories, and a range of dates.
CREATE INDEX memories_by_time ON memories (timestamp, seq);

CREATE TRIGGER memories_keep_their_id BEFORE UPDATE OF id, seq ON memories
WHEN NEW.id IS NOT OLD.id OR NEW.seq IS NOT OLD.seq BEGIN
  SELECT RAISE(ABORT, 'the id and seq of a memory cannot change: delete it and store it anew');
END;
