CREATE TABLE history (
  -- Every memory that was added, updated or deleted, by whatever program. Accesses are not changes.
  -- Old and new values are JSON objects: of an UPDATE the changed columns, of an ADD or a DELETE all.
  -- A column that was NULL is left out; tags, metadata and task_metadata are their JSON as text
  -- (the || '' below keeps SQLite from taking the text for JSON, of which it would drop the nulls).
  change_id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_id TEXT NOT NULL,   -- memories.id, which may be gone
  event TEXT NOT NULL CONSTRAINT event_is_known CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
  changed_at TEXT NOT NULL,  -- when, written like memories.timestamp
  session_id TEXT,           -- which session did it; NULL for a change by another program
  old_values TEXT            -- NULL for an ADD
    CONSTRAINT old_values_is_json CHECK (old_values IS NULL OR json_valid(old_values)),
  new_values TEXT            -- NULL for a DELETE
    CONSTRAINT new_values_is_json CHECK (new_values IS NULL OR json_valid(new_values))
) STRICT;

CREATE INDEX history_by_memory ON history (memory_id, change_id);

CREATE TRIGGER history_of_new AFTER INSERT ON memories BEGIN
  INSERT INTO history (memory_id, event, changed_at, session_id, new_values)
  VALUES (NEW.id, 'ADD', NEW.updated_at, NEW.created_by_session, json_patch('{}', json_object(
    'content', NEW.content, 'category', NEW.category, 'tags', NEW.tags || '', 'kind', NEW.kind,
    'importance', NEW.importance, 'memory_type', NEW.memory_type, 'timestamp', NEW.timestamp,
    'created_by_session', NEW.created_by_session, 'user_id', NEW.user_id, 'run_id', NEW.run_id,
    'archived', NEW.archived, 'task_metadata', NEW.task_metadata || '', 'metadata', NEW.metadata || '')));
END;

CREATE TRIGGER history_of_changed AFTER UPDATE OF content, category, tags, kind, importance, memory_type,
  timestamp, created_by_session, user_id, run_id, archived, task_metadata, metadata ON memories
WHEN (OLD.content, OLD.category, OLD.tags, OLD.kind, OLD.importance, OLD.memory_type, OLD.timestamp,
      OLD.created_by_session, OLD.user_id, OLD.run_id, OLD.archived, OLD.task_metadata, OLD.metadata)
  IS NOT (NEW.content, NEW.category, NEW.tags, NEW.kind, NEW.importance, NEW.memory_type, NEW.timestamp,
      NEW.created_by_session, NEW.user_id, NEW.run_id, NEW.archived, NEW.task_metadata, NEW.metadata)
BEGIN
  INSERT INTO history (memory_id, event, changed_at, old_values, new_values)
  VALUES (NEW.id, 'UPDATE',
    CASE WHEN NEW.version IS NOT OLD.version THEN NEW.updated_at ELSE strftime('%Y-%m-%dT%H:%M:%f000Z', 'now') END,
    json_patch('{}', json_object(
      'content', CASE WHEN OLD.content IS NOT NEW.content THEN OLD.content END,
      'category', CASE WHEN OLD.category IS NOT NEW.category THEN OLD.category END,
      'tags', CASE WHEN OLD.tags IS NOT NEW.tags THEN OLD.tags || '' END,
      'kind', CASE WHEN OLD.kind IS NOT NEW.kind THEN OLD.kind END,
      'importance', CASE WHEN OLD.importance IS NOT NEW.importance THEN OLD.importance END,
      'memory_type', CASE WHEN OLD.memory_type IS NOT NEW.memory_type THEN OLD.memory_type END,
      'timestamp', CASE WHEN OLD.timestamp IS NOT NEW.timestamp THEN OLD.timestamp END,
      'created_by_session', CASE WHEN OLD.created_by_session IS NOT NEW.created_by_session THEN OLD.created_by_session END,
      'user_id', CASE WHEN OLD.user_id IS NOT NEW.user_id THEN OLD.user_id END,
      'run_id', CASE WHEN OLD.run_id IS NOT NEW.run_id THEN OLD.run_id END,
      'archived', CASE WHEN OLD.archived IS NOT NEW.archived THEN OLD.archived END,
      'task_metadata', CASE WHEN OLD.task_metadata IS NOT NEW.task_metadata THEN OLD.task_metadata || '' END,
      'metadata', CASE WHEN OLD.metadata IS NOT NEW.metadata THEN OLD.metadata || '' END)),
    json_patch('{}', json_object(
      'content', CASE WHEN OLD.content IS NOT NEW.content THEN NEW.content END,
      'category', CASE WHEN OLD.category IS NOT NEW.category THEN NEW.category END,
      'tags', CASE WHEN OLD.tags IS NOT NEW.tags THEN NEW.tags || '' END,
      'kind', CASE WHEN OLD.kind IS NOT NEW.kind THEN NEW.kind END,
      'importance', CASE WHEN OLD.importance IS NOT NEW.importance THEN NEW.importance END,
      'memory_type', CASE WHEN OLD.memory_type IS NOT NEW.memory_type THEN NEW.memory_type END,
      'timestamp', CASE WHEN OLD.timestamp IS NOT NEW.timestamp THEN NEW.timestamp END,
      'created_by_session', CASE WHEN OLD.created_by_session IS NOT NEW.created_by_session THEN NEW.created_by_session END,
      'user_id', CASE WHEN OLD.user_id IS NOT NEW.user_id THEN NEW.user_id END,
      'run_id', CASE WHEN OLD.run_id IS NOT NEW.run_id THEN NEW.run_id END,
      'archived', CASE WHEN OLD.archived IS NOT NEW.archived THEN NEW.archived END,
      'task_metadata', CASE WHEN OLD.task_metadata IS NOT NEW.task_metadata THEN NEW.task_metadata || '' END,
      'metadata', CASE WHEN OLD.metadata IS NOT NEW.metadata THEN NEW.metadata || '' END)));
  -- The library counts versions itself; a change by hand is counted here.
  UPDATE memories SET version = OLD.version + 1, updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
  WHERE seq = NEW.seq AND NEW.version IS OLD.version;
END;

CREATE TRIGGER history_of_deleted AFTER DELETE ON memories BEGIN
  INSERT INTO history (memory_id, event, changed_at, old_values)
  VALUES (OLD.id, 'DELETE', strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), json_patch('{}', json_object(
    'content', OLD.content, 'category', OLD.category, 'tags', OLD.tags || '', 'kind', OLD.kind,
    'importance', OLD.importance, 'memory_type', OLD.memory_type, 'timestamp', OLD.timestamp,
    'created_by_session', OLD.created_by_session, 'user_id', OLD.user_id, 'run_id', OLD.run_id,
    'archived', OLD.archived, 'task_metadata', OLD.task_metadata || '', 'metadata', OLD.metadata || '',
    'updated_at', OLD.updated_at, 'last_accessed', OLD.last_accessed,
    'access_count', OLD.access_count, 'version', OLD.version)));
END;
