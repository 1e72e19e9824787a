-- What an agent remembers, as in the files of migrations/*.sql, for PostgreSQL 15 and later: tables,
-- columns and what triggers promise are theirs, and what a column means is told there.
--
-- All agents share these tables. Each row belongs to the agent of the setting agent_memory.agent:
--   BEGIN; SELECT set_config('agent_memory.agent', 'bob', true); SELECT id, content FROM memories;
-- Row-level security shows no other rows (agent_memory/storage/postgres/schema.py turns it on for
-- every table with a column agent_id). It lets an index serve only operators that give nothing away
-- by their errors (leakproof), such as = and < of texts and numbers: every index begins with agent_id.
-- Texts are in the order of their bytes, as in a file.

CREATE FUNCTION this_agent() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  -- NULL outside of a transaction that says whose it is: then there is no row at all.
  SELECT nullif(current_setting('agent_memory.agent', true), '')
$$;

CREATE FUNCTION agent_lock() RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  -- The key of the advisory lock that a writer of this agent holds.
  SELECT hashtextextended(current_schema || '/' || this_agent(), 0)
$$;

CREATE FUNCTION time_text() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT to_char(statement_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE FUNCTION is_time(moment text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- Written like 2026-01-28T12:00:00.000000Z, and a day that there is.
  SELECT CASE WHEN moment
    ~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z$'
  THEN substr(moment, 9, 2)::int <= CASE
    WHEN substr(moment, 6, 2) IN ('04', '06', '09', '11') THEN 30
    WHEN substr(moment, 6, 2) <> '02' THEN 31
    WHEN substr(moment, 1, 4)::int % 4 = 0 AND (substr(moment, 1, 4)::int % 100 <> 0
      OR substr(moment, 1, 4)::int % 400 = 0) THEN 29
    ELSE 28 END
  ELSE false END
$$;

CREATE FUNCTION is_id(id text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT id COLLATE "C" ~ '^[A-Za-z0-9_.:-]{1,128}$'
$$;

CREATE FUNCTION new_id(prefix text) RETURNS text LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT prefix || '-' || right(gen_random_uuid()::text, 12)
$$;

-- Numbers of rows ------------------------------------------------------------------------------

CREATE TABLE numbers (
  -- The highest number among the deleted rows of a table: no number is given twice, so that nothing
  -- kept about a deleted memory can pass to another one.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  of_table text COLLATE "C" NOT NULL,
  highest bigint NOT NULL,
  PRIMARY KEY (agent_id, of_table)
);

CREATE FUNCTION next_number(of_table text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
-- Each agent's rows are numbered 1, 2, 3, …, as those of a file are. A sequence would be shared by
-- all agents, and tell each how much the others store.
DECLARE
  agent CONSTANT text := this_agent();
  deleted bigint;
  highest bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(agent_lock());  -- the library holds it already
  SELECT n.highest INTO deleted FROM numbers AS n
  WHERE n.agent_id = agent AND n.of_table = next_number.of_table;
  CASE of_table
    WHEN 'memories' THEN
      SELECT max(seq) INTO highest FROM memories WHERE agent_id = agent;
    WHEN 'history' THEN
      SELECT max(change_id) INTO highest FROM history WHERE agent_id = agent;
    WHEN 'operations' THEN
      SELECT max(operation_id) INTO highest FROM operations WHERE agent_id = agent;
    WHEN 'rejections' THEN
      SELECT max(rejection_id) INTO highest FROM rejections WHERE agent_id = agent;
    WHEN 'reviews' THEN
      SELECT max(review_id) INTO highest FROM reviews WHERE agent_id = agent;
    WHEN 'embedding_models' THEN
      SELECT max(model_id) INTO highest FROM embedding_models WHERE agent_id = agent;
    WHEN 'entities' THEN
      SELECT max(seq) INTO highest FROM entities WHERE agent_id = agent;
    WHEN 'entity_aliases' THEN
      SELECT max(alias_id) INTO highest FROM entity_aliases WHERE agent_id = agent;
    WHEN 'relationships' THEN
      SELECT max(seq) INTO highest FROM relationships WHERE agent_id = agent;
  END CASE;
  RETURN 1 + greatest(highest, deleted, 0);
END $$;

CREATE FUNCTION keep_highest_number() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- After rows were deleted. The argument names the column of their numbers.
DECLARE
  deleted bigint;
BEGIN
  EXECUTE format('SELECT max(%I) FROM deleted_rows', TG_ARGV[0]) INTO deleted;
  IF deleted IS NOT NULL THEN
    INSERT INTO numbers AS n (of_table, highest) VALUES (TG_TABLE_NAME, deleted)
    ON CONFLICT (agent_id, of_table) DO UPDATE SET highest = excluded.highest
    WHERE n.highest < excluded.highest;
  END IF;
  RETURN NULL;
END $$;

-- Agents ---------------------------------------------------------------------------------------

CREATE TABLE agent_names (
  -- The agents that there are, for everybody to see: their names alone.
  agent_name text COLLATE "C" PRIMARY KEY
);

CREATE TABLE agent (
  agent_id text COLLATE "C" PRIMARY KEY DEFAULT this_agent()
    CONSTRAINT agent_id_has_1_to_64_letters_digits_hyphens_and_underscores
    CHECK (agent_id ~ '^[A-Za-z0-9_-]{1,64}$'),
  created_at text COLLATE "C" NOT NULL,
  last_accessed text COLLATE "C" NOT NULL,
  storage_backend text COLLATE "C" NOT NULL DEFAULT 'file'
    CONSTRAINT storage_backend_is_known CHECK (storage_backend IN ('file', 'vector')),
  migration_date text COLLATE "C",
  total_queries bigint NOT NULL DEFAULT 0,
  total_query_ms double precision NOT NULL DEFAULT 0,
  embeddings_generated bigint NOT NULL DEFAULT 0,
  scratchpad_promotions bigint NOT NULL DEFAULT 0,
  config text COLLATE "C" NOT NULL DEFAULT '{}'
    CONSTRAINT config_is_a_json_object CHECK (json_typeof(config::json) = 'object'),
  migration text COLLATE "C"
    CONSTRAINT migration_is_json CHECK (migration IS NULL OR json_typeof(migration::json) <> '')
) WITH (fillfactor = 50);  -- one row an agent, changed with each search

-- Memories -------------------------------------------------------------------------------------

CREATE TABLE memories (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL DEFAULT next_number('memories'),
  id text COLLATE "C" NOT NULL DEFAULT new_id('mem')
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation CHECK (is_id(id)),
  content text COLLATE "C" NOT NULL
    CONSTRAINT content_has_1_to_10000_characters
    CHECK (length(btrim(content)) > 0 AND length(content) <= 10000),
  category text COLLATE "C" NOT NULL DEFAULT 'note',
  tags text COLLATE "C" NOT NULL DEFAULT '[]'
    CONSTRAINT tags_is_a_json_list CHECK (json_typeof(tags::json) = 'array'),
  kind text COLLATE "C" NOT NULL DEFAULT 'learning'
    CONSTRAINT kind_is_core_learning_or_task CHECK (kind IN ('core', 'learning', 'task')),
  importance text COLLATE "C" NOT NULL DEFAULT 'medium'
    CONSTRAINT importance_is_high_medium_or_low CHECK (importance IN ('high', 'medium', 'low')),
  memory_type text COLLATE "C" NOT NULL DEFAULT 'STANDARD'
    CONSTRAINT memory_type_is_standard_procedural_or_graph
    CHECK (memory_type IN ('STANDARD', 'PROCEDURAL', 'GRAPH')),
  timestamp text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT timestamp_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(timestamp)),
  updated_at text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(updated_at)),
  last_accessed text COLLATE "C"
    CONSTRAINT last_accessed_is_like_2026_01_28T12_00_00_000000Z
    CHECK (last_accessed IS NULL OR is_time(last_accessed)),
  access_count bigint NOT NULL DEFAULT 0
    CONSTRAINT access_count_is_not_negative CHECK (access_count >= 0),
  created_by_session text COLLATE "C" NOT NULL DEFAULT 'psql',
  user_id text COLLATE "C",
  run_id text COLLATE "C",
  archived smallint NOT NULL DEFAULT 0
    CONSTRAINT archived_is_0_or_1 CHECK (archived IN (0, 1)),
  task_metadata text COLLATE "C"
    CONSTRAINT task_metadata_is_a_json_object
    CHECK (task_metadata IS NULL OR json_typeof(task_metadata::json) = 'object'),
  metadata text COLLATE "C" NOT NULL DEFAULT '{}'
    CONSTRAINT metadata_is_a_json_object CHECK (json_typeof(metadata::json) = 'object'),
  version bigint NOT NULL DEFAULT 1
    CONSTRAINT version_is_positive CHECK (version >= 1),
  PRIMARY KEY (agent_id, seq),
  CONSTRAINT memories_by_id UNIQUE (agent_id, id)
) WITH (fillfactor = 90);  -- an access changes the row where it is

CREATE INDEX memories_by_session ON memories (agent_id, created_by_session, timestamp, seq);

CREATE INDEX memories_by_time ON memories (agent_id, timestamp, seq);

CREATE INDEX memories_by_user
  ON memories (agent_id, user_id, created_by_session, timestamp, seq, run_id, archived)
  WHERE user_id IS NOT NULL;

CREATE INDEX memories_archived ON memories (agent_id) WHERE archived <> 0;

CREATE FUNCTION lock_agent() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- Before any row is locked: who writes by hand waits for the library, and never crosses it.
  PERFORM pg_advisory_xact_lock(agent_lock());
  RETURN NULL;
END $$;

CREATE TRIGGER memories_have_one_writer BEFORE INSERT OR UPDATE OR DELETE ON memories
FOR EACH STATEMENT EXECUTE FUNCTION lock_agent();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', MESSAGE = TG_ARGV[0];
END $$;

CREATE TRIGGER memories_keep_their_id BEFORE UPDATE OF agent_id, id, seq ON memories
FOR EACH ROW WHEN ((NEW.agent_id, NEW.id, NEW.seq) IS DISTINCT FROM (OLD.agent_id, OLD.id, OLD.seq))
EXECUTE FUNCTION
  refuse_change('the id and seq of a memory cannot change: delete it and store it anew');

CREATE TRIGGER memories_keep_highest_number AFTER DELETE ON memories
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('seq');

-- Tags -----------------------------------------------------------------------------------------

CREATE TABLE memory_tags (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  tag text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, seq, tag),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX memory_tags_by_tag ON memory_tags (agent_id, tag, seq);

CREATE FUNCTION keep_memory_tags() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM memory_tags WHERE agent_id = OLD.agent_id AND seq = OLD.seq;
  END IF;
  INSERT INTO memory_tags (agent_id, seq, tag)
  SELECT DISTINCT NEW.agent_id, NEW.seq, lower(btrim(value #>> '{}') COLLATE "C")
  FROM json_array_elements(NEW.tags::json)
  WHERE json_typeof(value) = 'string' AND btrim(value #>> '{}') <> '';
  RETURN NULL;
END $$;

CREATE TRIGGER memory_tags_of_new AFTER INSERT ON memories
FOR EACH ROW WHEN (NEW.tags <> '[]') EXECUTE FUNCTION keep_memory_tags();

CREATE TRIGGER memory_tags_of_changed AFTER UPDATE OF tags ON memories
FOR EACH ROW WHEN (NEW.tags IS DISTINCT FROM OLD.tags) EXECUTE FUNCTION keep_memory_tags();

-- The scratchpad -------------------------------------------------------------------------------

CREATE TABLE scratchpad (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  entered_at text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL
    CONSTRAINT reason_is_known CHECK (reason IN ('stored', 'accessed', 'promoted')),
  user_id text COLLATE "C",
  PRIMARY KEY (agent_id, seq),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX scratchpad_by_user ON scratchpad (agent_id, user_id);

CREATE FUNCTION set_user_of_scratchpad() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.user_id := (
    SELECT m.user_id FROM memories AS m WHERE m.agent_id = NEW.agent_id AND m.seq = NEW.seq);
  RETURN NEW;
END $$;

CREATE TRIGGER scratchpad_of_user BEFORE INSERT ON scratchpad
FOR EACH ROW EXECUTE FUNCTION set_user_of_scratchpad();

CREATE FUNCTION move_scratchpad_to_user() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  UPDATE scratchpad SET user_id = NEW.user_id WHERE agent_id = NEW.agent_id AND seq = NEW.seq;
  RETURN NULL;
END $$;

CREATE TRIGGER scratchpad_of_another_user AFTER UPDATE OF user_id ON memories
FOR EACH ROW WHEN (NEW.user_id IS DISTINCT FROM OLD.user_id)
EXECUTE FUNCTION move_scratchpad_to_user();

-- History --------------------------------------------------------------------------------------

CREATE TABLE history (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  change_id bigint NOT NULL DEFAULT next_number('history'),
  memory_id text COLLATE "C" NOT NULL,
  event text COLLATE "C" NOT NULL
    CONSTRAINT event_is_known CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
  changed_at text COLLATE "C" NOT NULL,
  session_id text COLLATE "C",
  old_values text COLLATE "C"
    CONSTRAINT old_values_is_json
    CHECK (old_values IS NULL OR json_typeof(old_values::json) <> ''),
  new_values text COLLATE "C"
    CONSTRAINT new_values_is_json
    CHECK (new_values IS NULL OR json_typeof(new_values::json) <> ''),
  PRIMARY KEY (agent_id, change_id)
);

CREATE INDEX history_by_memory ON history (agent_id, memory_id, change_id);

CREATE TRIGGER history_keeps_highest_number AFTER DELETE ON history
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('change_id');

CREATE FUNCTION historic_values(m memories) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  -- The columns that history has, in its order.
  SELECT json_build_object(
    'content', m.content, 'category', m.category, 'tags', m.tags, 'kind', m.kind,
    'importance', m.importance, 'memory_type', m.memory_type, 'timestamp', m.timestamp,
    'created_by_session', m.created_by_session, 'user_id', m.user_id, 'run_id', m.run_id,
    'archived', m.archived, 'task_metadata', m.task_metadata, 'metadata', m.metadata)
$$;

CREATE FUNCTION record_new_memory() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO history (agent_id, memory_id, event, changed_at, session_id, new_values)
  VALUES (NEW.agent_id, NEW.id, 'ADD', NEW.updated_at, NEW.created_by_session,
    json_strip_nulls(historic_values(NEW)));
  RETURN NULL;
END $$;

CREATE TRIGGER history_of_new AFTER INSERT ON memories
FOR EACH ROW EXECUTE FUNCTION record_new_memory();

CREATE FUNCTION count_change_by_hand() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- The library counts versions itself.
  NEW.version := OLD.version + 1;
  NEW.updated_at := time_text();
  RETURN NEW;
END $$;

CREATE TRIGGER history_of_changing_by_hand BEFORE UPDATE OF content, category, tags, kind,
  importance, memory_type, timestamp, created_by_session, user_id, run_id, archived, task_metadata,
  metadata ON memories
FOR EACH ROW WHEN (NEW.version = OLD.version
  AND (NEW.content, NEW.category, NEW.tags, NEW.kind, NEW.importance, NEW.memory_type,
    NEW.timestamp, NEW.created_by_session, NEW.user_id, NEW.run_id, NEW.archived,
    NEW.task_metadata, NEW.metadata)
  IS DISTINCT FROM (OLD.content, OLD.category, OLD.tags, OLD.kind, OLD.importance,
    OLD.memory_type, OLD.timestamp, OLD.created_by_session, OLD.user_id, OLD.run_id, OLD.archived,
    OLD.task_metadata, OLD.metadata))
EXECUTE FUNCTION count_change_by_hand();

CREATE FUNCTION record_changed_memory() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  before json := historic_values(OLD);
  after json := historic_values(NEW);
BEGIN
  INSERT INTO history (agent_id, memory_id, event, changed_at, old_values, new_values)
  SELECT NEW.agent_id, NEW.id, 'UPDATE', NEW.updated_at,
    json_strip_nulls(coalesce(json_object_agg(o.key, o.value ORDER BY o.place), '{}')),
    json_strip_nulls(coalesce(json_object_agg(n.key, n.value ORDER BY n.place), '{}'))
  FROM json_each(before) WITH ORDINALITY AS o (key, value, place)
  JOIN json_each(after) WITH ORDINALITY AS n (key, value, place) ON n.place = o.place
  WHERE o.value::text <> n.value::text;
  RETURN NULL;
END $$;

CREATE TRIGGER history_of_changed AFTER UPDATE OF content, category, tags, kind, importance,
  memory_type, timestamp, created_by_session, user_id, run_id, archived, task_metadata, metadata
ON memories
FOR EACH ROW WHEN ((NEW.content, NEW.category, NEW.tags, NEW.kind, NEW.importance, NEW.memory_type,
    NEW.timestamp, NEW.created_by_session, NEW.user_id, NEW.run_id, NEW.archived,
    NEW.task_metadata, NEW.metadata)
  IS DISTINCT FROM (OLD.content, OLD.category, OLD.tags, OLD.kind, OLD.importance,
    OLD.memory_type, OLD.timestamp, OLD.created_by_session, OLD.user_id, OLD.run_id, OLD.archived,
    OLD.task_metadata, OLD.metadata))
EXECUTE FUNCTION record_changed_memory();

CREATE FUNCTION record_deleted_memory() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO history (agent_id, memory_id, event, changed_at, old_values)
  VALUES (OLD.agent_id, OLD.id, 'DELETE', time_text(), json_strip_nulls(json_build_object(
    'content', OLD.content, 'category', OLD.category, 'tags', OLD.tags, 'kind', OLD.kind,
    'importance', OLD.importance, 'memory_type', OLD.memory_type, 'timestamp', OLD.timestamp,
    'created_by_session', OLD.created_by_session, 'user_id', OLD.user_id, 'run_id', OLD.run_id,
    'archived', OLD.archived, 'task_metadata', OLD.task_metadata, 'metadata', OLD.metadata,
    'updated_at', OLD.updated_at, 'last_accessed', OLD.last_accessed,
    'access_count', OLD.access_count, 'version', OLD.version, 'seq', OLD.seq,
    'scratchpad', (SELECT s.reason || ' ' || s.entered_at FROM scratchpad AS s
      WHERE s.agent_id = OLD.agent_id AND s.seq = OLD.seq))));
  RETURN OLD;
END $$;

CREATE TRIGGER history_of_deleted BEFORE DELETE ON memories  -- while its scratchpad entry is there
FOR EACH ROW EXECUTE FUNCTION record_deleted_memory();

CREATE TABLE operations (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  operation_id bigint NOT NULL DEFAULT next_number('operations'),
  verb text COLLATE "C" NOT NULL,
  done_at text COLLATE "C" NOT NULL,
  session_id text COLLATE "C",
  first_change bigint NOT NULL,
  last_change bigint NOT NULL,
  PRIMARY KEY (agent_id, operation_id)
);

CREATE TRIGGER operations_keep_highest_number AFTER DELETE ON operations
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('operation_id');

-- Duplicates and echoes ------------------------------------------------------------------------

CREATE TABLE fingerprints (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  fingerprint bigint,  -- NULL until the library looks
  PRIMARY KEY (agent_id, seq),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX fingerprints_by_value ON fingerprints (agent_id, fingerprint);

CREATE INDEX fingerprints_missing ON fingerprints (agent_id, seq) WHERE fingerprint IS NULL;

CREATE FUNCTION keep_fingerprint() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO fingerprints (agent_id, seq) VALUES (NEW.agent_id, NEW.seq);
  ELSE
    UPDATE fingerprints SET fingerprint = NULL WHERE agent_id = NEW.agent_id AND seq = NEW.seq;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER fingerprints_of_new AFTER INSERT ON memories
FOR EACH ROW EXECUTE FUNCTION keep_fingerprint();

CREATE TRIGGER fingerprints_of_changed AFTER UPDATE OF content, user_id, run_id ON memories
FOR EACH ROW WHEN ((NEW.content, NEW.user_id, NEW.run_id)
  IS DISTINCT FROM (OLD.content, OLD.user_id, OLD.run_id))
EXECUTE FUNCTION keep_fingerprint();

CREATE TABLE recalls (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  recalled_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, seq),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

-- What must not be stored, what is in question, what was erased ----------------------------------

CREATE TABLE rejections (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  rejection_id bigint NOT NULL DEFAULT next_number('rejections'),
  words_hash bytea NOT NULL
    CONSTRAINT words_hash_has_32_bytes CHECK (length(words_hash) = 32),
  word_count bigint NOT NULL
    CONSTRAINT word_count_is_positive CHECK (word_count >= 1),
  reason text COLLATE "C",
  rejected_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, rejection_id),
  CONSTRAINT rejections_by_hash UNIQUE (agent_id, words_hash)
);

CREATE TRIGGER rejections_keep_highest_number AFTER DELETE ON rejections
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('rejection_id');

CREATE TABLE reviews (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  review_id bigint NOT NULL DEFAULT next_number('reviews'),
  seq bigint NOT NULL,
  version bigint NOT NULL,
  replaced_by text COLLATE "C",
  confidence double precision
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1),
  reasoning text COLLATE "C",
  proposed_at text COLLATE "C" NOT NULL,
  session_id text COLLATE "C",
  dismissed_at text COLLATE "C",
  PRIMARY KEY (agent_id, review_id),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX reviews_by_memory ON reviews (agent_id, seq);

CREATE INDEX reviews_by_replacement ON reviews (agent_id, replaced_by)
  WHERE replaced_by IS NOT NULL;

CREATE TRIGGER reviews_keep_highest_number AFTER DELETE ON reviews
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('review_id');

CREATE FUNCTION drop_reviews() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- A reasoning may quote both memories.
  DELETE FROM reviews WHERE agent_id = OLD.agent_id AND replaced_by = OLD.id;
  RETURN NULL;
END $$;

CREATE TRIGGER reviews_of_deleted AFTER DELETE ON memories
FOR EACH ROW EXECUTE FUNCTION drop_reviews();

CREATE TABLE tombstones (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  key bytea NOT NULL
    CONSTRAINT key_has_16_bytes CHECK (length(key) = 16),
  hash bytea NOT NULL
    CONSTRAINT hash_has_16_bytes CHECK (length(hash) = 16),
  kind text COLLATE "C" NOT NULL
    CONSTRAINT kind_is_known CHECK (kind IN ('id', 'content')),
  erased_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, key, hash)
);
