-- Whom and what the memories speak of: see migrations/0011_graph.sql and 0015_graph_statements.sql.

CREATE TABLE entities (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL DEFAULT next_number('entities'),
  id text COLLATE "C" NOT NULL DEFAULT new_id('ent')
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation CHECK (is_id(id)),
  name text COLLATE "C" NOT NULL
    CONSTRAINT name_has_1_to_200_characters
    CHECK (length(btrim(name)) > 0 AND length(name) <= 200),
  name_key text COLLATE "C",
  type text COLLATE "C",
  confidence double precision NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  user_id text COLLATE "C"
    CONSTRAINT user_id_is_not_empty CHECK (user_id IS NULL OR length(user_id) > 0),
  run_id text COLLATE "C",
  by_hand smallint NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(created_at)),
  updated_at text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(updated_at)),
  PRIMARY KEY (agent_id, seq),
  CONSTRAINT entities_by_id UNIQUE (agent_id, id)
);

CREATE UNIQUE INDEX entities_by_name ON entities (agent_id, name_key, coalesce(user_id, ''));

CREATE TRIGGER entities_keep_highest_number AFTER DELETE ON entities
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('seq');

CREATE TRIGGER entities_keep_their_id BEFORE UPDATE OF agent_id, id, user_id ON entities
FOR EACH ROW WHEN ((NEW.agent_id, NEW.id, NEW.user_id)
  IS DISTINCT FROM (OLD.agent_id, OLD.id, OLD.user_id))
EXECUTE FUNCTION
  refuse_change('the id and user_id of an entity cannot change: delete it and add it anew');

CREATE TABLE entity_aliases (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  alias_id bigint NOT NULL DEFAULT next_number('entity_aliases'),
  entity_id text COLLATE "C" NOT NULL,
  alias text COLLATE "C" NOT NULL
    CONSTRAINT alias_has_1_to_200_characters
    CHECK (length(btrim(alias)) > 0 AND length(alias) <= 200),
  alias_key text COLLATE "C",
  memory_id text COLLATE "C",
  PRIMARY KEY (agent_id, alias_id),
  FOREIGN KEY (agent_id, entity_id) REFERENCES entities (agent_id, id) ON DELETE CASCADE
);

CREATE INDEX entity_aliases_by_entity ON entity_aliases (agent_id, entity_id);

CREATE INDEX entity_aliases_by_key ON entity_aliases (agent_id, alias_key);

CREATE INDEX entity_aliases_by_memory ON entity_aliases (agent_id, memory_id)
  WHERE memory_id IS NOT NULL;

CREATE TRIGGER entity_aliases_keep_highest_number AFTER DELETE ON entity_aliases
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('alias_id');

CREATE FUNCTION forget_name_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.name_key := NULL;
  RETURN NEW;
END $$;

CREATE TRIGGER entities_renamed BEFORE UPDATE OF name ON entities
FOR EACH ROW WHEN (NEW.name <> OLD.name AND NEW.name_key IS NOT DISTINCT FROM OLD.name_key)
EXECUTE FUNCTION forget_name_key();

CREATE FUNCTION forget_alias_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.alias_key := NULL;
  RETURN NEW;
END $$;

CREATE TRIGGER entity_aliases_renamed BEFORE UPDATE OF alias ON entity_aliases
FOR EACH ROW WHEN (NEW.alias <> OLD.alias AND NEW.alias_key IS NOT DISTINCT FROM OLD.alias_key)
EXECUTE FUNCTION forget_alias_key();

CREATE TABLE entity_sources (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  entity_id text COLLATE "C" NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  change_id bigint,
  is_undone smallint NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1)),
  name text COLLATE "C"
    CONSTRAINT name_has_1_to_200_characters
    CHECK (name IS NULL OR (length(btrim(name)) > 0 AND length(name) <= 200)),
  type text COLLATE "C",
  confidence double precision
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1),
  created_at text COLLATE "C",
  updated_at text COLLATE "C",
  PRIMARY KEY (agent_id, entity_id, memory_id),
  FOREIGN KEY (agent_id, entity_id) REFERENCES entities (agent_id, id) ON DELETE CASCADE
);

CREATE INDEX entity_sources_by_memory ON entity_sources (agent_id, memory_id);

CREATE FUNCTION complete_entity_source() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  e entities;
BEGIN
  -- Of a row that names no more than the memory, that is taken to say what the entity says.
  SELECT * INTO e FROM entities WHERE agent_id = NEW.agent_id AND id = NEW.entity_id;
  NEW.name := e.name;
  NEW.type := coalesce(NEW.type, e.type);
  NEW.confidence := coalesce(NEW.confidence, nullif(e.confidence, 1.0));
  NEW.created_at := coalesce(NEW.created_at, e.created_at);
  NEW.updated_at := coalesce(NEW.updated_at, e.updated_at);
  RETURN NEW;
END $$;

CREATE TRIGGER entity_sources_by_hand BEFORE INSERT ON entity_sources
FOR EACH ROW WHEN (NEW.name IS NULL) EXECUTE FUNCTION complete_entity_source();

CREATE TABLE relationships (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL DEFAULT next_number('relationships'),
  id text COLLATE "C" NOT NULL DEFAULT new_id('rel')
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation CHECK (is_id(id)),
  source_id text COLLATE "C" NOT NULL,
  relationship text COLLATE "C" NOT NULL
    CONSTRAINT relationship_has_1_to_100_characters
    CHECK (length(btrim(relationship)) > 0 AND length(relationship) <= 100),
  target_id text COLLATE "C" NOT NULL,
  confidence double precision NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  temporal_context text COLLATE "C",
  valid_from text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT valid_from_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(valid_from)),
  valid_to text COLLATE "C"
    CONSTRAINT valid_to_is_like_2026_01_28T12_00_00_000000Z
    CHECK (valid_to IS NULL OR is_time(valid_to))
    CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from),
  closed_by text COLLATE "C",
  closing_change_id bigint,
  closing_is_undone smallint NOT NULL DEFAULT 0
    CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1)),
  user_id text COLLATE "C",
  run_id text COLLATE "C",
  by_hand smallint NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(created_at)),
  updated_at text COLLATE "C" NOT NULL DEFAULT time_text()
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z CHECK (is_time(updated_at)),
  PRIMARY KEY (agent_id, seq),
  CONSTRAINT relationships_by_id UNIQUE (agent_id, id),
  FOREIGN KEY (agent_id, source_id) REFERENCES entities (agent_id, id) ON DELETE CASCADE,
  FOREIGN KEY (agent_id, target_id) REFERENCES entities (agent_id, id) ON DELETE CASCADE
);

CREATE INDEX relationships_by_source ON relationships (agent_id, source_id, relationship);

CREATE INDEX relationships_by_target ON relationships (agent_id, target_id);

CREATE INDEX relationships_by_closing ON relationships (agent_id, closed_by)
  WHERE closed_by IS NOT NULL;

CREATE TRIGGER relationships_keep_highest_number AFTER DELETE ON relationships
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('seq');

CREATE FUNCTION refuse_two_users() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM entities AS a, entities AS b
    WHERE a.agent_id = NEW.agent_id AND a.id = NEW.source_id
      AND b.agent_id = NEW.agent_id AND b.id = NEW.target_id
      AND a.user_id IS NOT DISTINCT FROM NEW.user_id
      AND b.user_id IS NOT DISTINCT FROM NEW.user_id) THEN
    RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
      MESSAGE = 'both ends of a relationship must be entities with its user_id';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER relationships_of_one_user
BEFORE INSERT OR UPDATE OF source_id, target_id, user_id ON relationships
FOR EACH ROW EXECUTE FUNCTION refuse_two_users();

CREATE TABLE relationship_sources (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  relationship_id text COLLATE "C" NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  change_id bigint,
  is_undone smallint NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1)),
  confidence double precision
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1),
  temporal_context text COLLATE "C",
  valid_from text COLLATE "C",
  valid_to text COLLATE "C"
    CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from),
  closed_by text COLLATE "C",
  closing_change_id bigint,
  closing_is_undone smallint NOT NULL DEFAULT 0
    CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1)),
  created_at text COLLATE "C",
  updated_at text COLLATE "C",
  PRIMARY KEY (agent_id, relationship_id, memory_id),
  FOREIGN KEY (agent_id, relationship_id) REFERENCES relationships (agent_id, id)
    ON DELETE CASCADE
);

CREATE INDEX relationship_sources_by_memory ON relationship_sources (agent_id, memory_id);

CREATE INDEX relationship_sources_by_closing ON relationship_sources (agent_id, closed_by)
  WHERE closed_by IS NOT NULL;

CREATE FUNCTION complete_relationship_source() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  r relationships;
BEGIN
  SELECT * INTO r FROM relationships WHERE agent_id = NEW.agent_id AND id = NEW.relationship_id;
  IF FOUND THEN
    NEW.confidence := coalesce(NEW.confidence, r.confidence);
    NEW.valid_from := r.valid_from;
    NEW.valid_to := r.valid_to;
    NEW.closed_by := r.closed_by;
    NEW.closing_change_id := r.closing_change_id;
    NEW.closing_is_undone := r.closing_is_undone;
    NEW.created_at := coalesce(NEW.created_at, r.created_at);
    NEW.updated_at := coalesce(NEW.updated_at, r.updated_at);
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER relationship_sources_by_hand BEFORE INSERT ON relationship_sources
FOR EACH ROW WHEN (NEW.valid_from IS NULL) EXECUTE FUNCTION complete_relationship_source();

CREATE FUNCTION close_relationship_for_all() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- What is closed without a memory that says so is closed for all.
  UPDATE relationship_sources
  SET valid_to = CASE WHEN valid_from > NEW.valid_to THEN valid_from ELSE NEW.valid_to END,
    closed_by = NULL
  WHERE agent_id = NEW.agent_id AND relationship_id = NEW.id;
  RETURN NULL;
END $$;

CREATE TRIGGER relationships_closed_by_hand AFTER UPDATE OF valid_to ON relationships
FOR EACH ROW WHEN (NEW.valid_to IS DISTINCT FROM OLD.valid_to AND NEW.closed_by IS NULL
  AND OLD.closed_by IS NULL)
EXECUTE FUNCTION close_relationship_for_all();

CREATE FUNCTION leave_graph_of_user() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- What was read from a memory stays in the graph of the user whom it was about, and says no more
  -- of it: else that user could see what becomes of it.
  DELETE FROM relationship_sources WHERE agent_id = NEW.agent_id AND memory_id = NEW.id;
  DELETE FROM entity_sources WHERE agent_id = NEW.agent_id AND memory_id = NEW.id;
  DELETE FROM entity_aliases WHERE agent_id = NEW.agent_id AND memory_id = NEW.id;
  UPDATE relationships SET closed_by = NULL WHERE agent_id = NEW.agent_id AND closed_by = NEW.id;
  RETURN NULL;
END $$;

CREATE TRIGGER graph_of_memories_of_another_user AFTER UPDATE OF user_id ON memories
FOR EACH ROW WHEN (NEW.user_id IS DISTINCT FROM OLD.user_id)
EXECUTE FUNCTION leave_graph_of_user();

-- A view must not read with its owner's rights, which may be those of all agents.

CREATE VIEW graph_edges WITH (security_invoker = true) AS
  SELECT r.agent_id, r.seq, r.id,
    (SELECT e.name FROM entities AS e WHERE e.agent_id = r.agent_id AND e.id = r.source_id)
      AS source,
    r.relationship,
    (SELECT e.name FROM entities AS e WHERE e.agent_id = r.agent_id AND e.id = r.target_id)
      AS target,
    r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN r.closed_by IS NULL OR (r.closing_is_undone = 0 AND EXISTS (
      SELECT 1 FROM memories AS m WHERE m.agent_id = r.agent_id AND m.id = r.closed_by))
    THEN r.valid_to END AS valid_to,
    r.user_id, r.run_id, r.created_at, r.updated_at, r.source_id, r.target_id
  FROM relationships AS r
  WHERE r.by_hand = 1 OR EXISTS (
    SELECT 1 FROM relationship_sources AS x
    JOIN memories AS m ON m.agent_id = x.agent_id AND m.id = x.memory_id
    WHERE x.agent_id = r.agent_id AND x.relationship_id = r.id AND x.is_undone = 0);

CREATE VIEW graph_entities WITH (security_invoker = true) AS
  SELECT e.agent_id, e.seq, e.id, e.name, e.type, e.confidence, e.user_id, e.run_id, e.created_at,
    e.updated_at, e.name_key
  FROM entities AS e
  WHERE e.by_hand = 1
    OR EXISTS (SELECT 1 FROM entity_sources AS x
      JOIN memories AS m ON m.agent_id = x.agent_id AND m.id = x.memory_id
      WHERE x.agent_id = e.agent_id AND x.entity_id = e.id AND x.is_undone = 0)
    OR EXISTS (SELECT 1 FROM graph_edges AS g
      WHERE g.agent_id = e.agent_id AND g.source_id = e.id)
    OR EXISTS (SELECT 1 FROM graph_edges AS g
      WHERE g.agent_id = e.agent_id AND g.target_id = e.id);
