CREATE TABLE operations (
  -- What was done to several memories at once, or for good: `undo` takes it as one. What changed a
  -- single memory is in history alone.
  operation_id INTEGER PRIMARY KEY AUTOINCREMENT,
  verb TEXT NOT NULL,             -- store_many, import, archive, tidy, undo, erase, …
  done_at TEXT NOT NULL,          -- written like memories.timestamp
  session_id TEXT,                -- which session did it
  first_change INTEGER NOT NULL,  -- history.change_id of its first change and of its last;
  last_change INTEGER NOT NULL    -- after an erasure there are none: the last is below the first
) STRICT;

CREATE TABLE rejections (
  -- What must not be stored until it is lifted. Only its hash is kept, so that a value that was
  -- erased is not in here either.
  rejection_id INTEGER PRIMARY KEY AUTOINCREMENT,
  words_hash BLOB NOT NULL UNIQUE  -- SHA-256 of its words, in lower case, with a space between them
    CONSTRAINT words_hash_has_32_bytes CHECK (length(words_hash) = 32),
  word_count INTEGER NOT NULL
    CONSTRAINT word_count_is_positive CHECK (word_count >= 1),
  reason TEXT,                     -- why, as far as somebody said so
  rejected_at TEXT NOT NULL        -- written like memories.timestamp
) STRICT;

DROP TRIGGER history_of_deleted;

CREATE TRIGGER history_of_deleted BEFORE DELETE ON memories BEGIN
  -- Before, because the entry in the scratchpad goes with the memory, and comes back with it: seq
  -- and scratchpad are there for `undo`.
  INSERT INTO history (memory_id, event, changed_at, old_values)
  VALUES (OLD.id, 'DELETE', strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), json_patch('{}', json_object(
    'content', OLD.content, 'category', OLD.category, 'tags', OLD.tags || '', 'kind', OLD.kind,
    'importance', OLD.importance, 'memory_type', OLD.memory_type, 'timestamp', OLD.timestamp,
    'created_by_session', OLD.created_by_session, 'user_id', OLD.user_id, 'run_id', OLD.run_id,
    'archived', OLD.archived, 'task_metadata', OLD.task_metadata || '', 'metadata', OLD.metadata || '',
    'updated_at', OLD.updated_at, 'last_accessed', OLD.last_accessed,
    'access_count', OLD.access_count, 'version', OLD.version, 'seq', OLD.seq,
    'scratchpad', (SELECT reason || ' ' || entered_at FROM scratchpad WHERE seq = OLD.seq))));
END;
