CREATE TABLE entities (
  -- Whom and what the memories speak of: the nodes of a graph. A row needs nothing but its name:
  --   INSERT INTO entities (name) VALUES ('Alice'), ('Acme');
  -- Times are written like memories.timestamp.
  seq INTEGER PRIMARY KEY,
  -- 'ent-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('ent-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  -- As it is shown. 'USER_ID' is the user that the graph is of.
  name TEXT NOT NULL
    CONSTRAINT name_has_1_to_200_characters CHECK (length(trim(name)) > 0 AND length(name) <= 200),
  -- The name in one case and with single spaces, by which names that mean the same are found. The
  -- library makes it: leave it NULL in a row written by hand.
  name_key TEXT,
  -- What it is: person, company, place, …; NULL for unknown.
  type TEXT,
  -- How sure it is that there is such a thing.
  confidence REAL NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  -- Whose graph it is in; NULL for the agent's own. Names are one of a kind within it.
  user_id TEXT
    CONSTRAINT user_id_is_not_empty CHECK (user_id IS NULL OR length(user_id) > 0),
  -- The run in which it came up first, if any.
  run_id TEXT,
  -- 1: it stands by itself. 0: only as long as a memory in entity_sources, or a relationship in
  -- graph_edges, speaks of it.
  by_hand INTEGER NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(created_at, 1, 19), '+0 days') IS substr(created_at, 1, 19)
      AND substr(created_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')
) STRICT;

CREATE UNIQUE INDEX entities_by_name ON entities (name_key, coalesce(user_id, ''));

CREATE TABLE entity_aliases (
  -- Other names of an entity. Within one user's graph each stands for one entity.
  alias_id INTEGER PRIMARY KEY,
  entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  alias TEXT NOT NULL
    CONSTRAINT alias_has_1_to_200_characters CHECK (length(trim(alias)) > 0 AND length(alias) <= 200),
  alias_key TEXT,  -- written like entities.name_key, and by the library as well
  memory_id TEXT   -- the memory that it was learned from, with which it goes; NULL for none
) STRICT;

CREATE INDEX entity_aliases_by_entity ON entity_aliases (entity_id);

CREATE INDEX entity_aliases_by_key ON entity_aliases (alias_key);

CREATE INDEX entity_aliases_by_memory ON entity_aliases (memory_id) WHERE memory_id IS NOT NULL;

CREATE TABLE entity_sources (
  -- Which memories speak of an entity. One that was deleted counts no more, and again once it is
  -- back; when it is erased, the row goes.
  entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  memory_id TEXT NOT NULL,  -- memories.id, which may be gone
  change_id INTEGER,        -- history.change_id of the memory's text that it was read from
  -- 1 while that change of the memory is undone: then the row does not count.
  is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX entity_sources_by_entity ON entity_sources (entity_id, memory_id);

CREATE INDEX entity_sources_by_memory ON entity_sources (memory_id);

CREATE TABLE relationships (
  -- What holds between two entities, and when: the edges of the graph. A fact that changes is not
  -- overwritten: its row gets a valid_to, and another row begins. By hand:
  --   INSERT INTO relationships (source_id, relationship, target_id)
  --   SELECT a.id, 'works_at', b.id FROM entities AS a, entities AS b
  --   WHERE a.name = 'Alice' AND b.name = 'Acme';
  seq INTEGER PRIMARY KEY,
  -- 'rel-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('rel-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  source_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  -- A verb in lower case, words joined by _: works_at.
  relationship TEXT NOT NULL
    CONSTRAINT relationship_has_1_to_100_characters
    CHECK (length(trim(relationship)) > 0 AND length(relationship) <= 100),
  target_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  -- How sure it is.
  confidence REAL NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  -- What was said of when it holds, in words: 'current', 'next summer'.
  temporal_context TEXT,
  -- From when it holds, and until when: valid_to itself is no more in it. NULL: it still holds.
  valid_from TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT valid_from_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(valid_from, 1, 19), '+0 days') IS substr(valid_from, 1, 19)
      AND substr(valid_from, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  valid_to TEXT
    CONSTRAINT valid_to_is_like_2026_01_28T12_00_00_000000Z
    CHECK (valid_to IS NULL OR (strftime('%Y-%m-%dT%H:%M:%S', substr(valid_to, 1, 19), '+0 days') IS substr(valid_to, 1, 19)
      AND substr(valid_to, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'))
    CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from),
  -- The memory that says that it holds no more, if one does: valid_to counts as long as that is
  -- there. closing_change_id and closing_is_undone are like those of relationship_sources.
  closed_by TEXT,
  closing_change_id INTEGER,
  closing_is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1)),
  -- Whose graph it is in, as both its entities are; NULL for the agent's own.
  user_id TEXT,
  -- The run in which it came up first, if any.
  run_id TEXT,
  -- 1: it stands by itself. 0: only as long as a memory in relationship_sources says so.
  by_hand INTEGER NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(created_at, 1, 19), '+0 days') IS substr(created_at, 1, 19)
      AND substr(created_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')
) STRICT;

CREATE INDEX relationships_by_source ON relationships (source_id, relationship);

CREATE INDEX relationships_by_target ON relationships (target_id);

CREATE INDEX relationships_by_closing ON relationships (closed_by) WHERE closed_by IS NOT NULL;

CREATE TABLE relationship_sources (
  -- Which memories say that a relationship holds, or held; its columns are those of entity_sources.
  relationship_id TEXT NOT NULL REFERENCES relationships (id) ON DELETE CASCADE,
  memory_id TEXT NOT NULL,
  change_id INTEGER,
  is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX relationship_sources_by_relationship
  ON relationship_sources (relationship_id, memory_id);

CREATE INDEX relationship_sources_by_memory ON relationship_sources (memory_id);

-- The sqlite3 shell leaves foreign keys off, so the cascades alone are not enough.

CREATE TRIGGER entities_deleted AFTER DELETE ON entities BEGIN
  DELETE FROM relationships WHERE source_id = OLD.id OR target_id = OLD.id;
  DELETE FROM entity_aliases WHERE entity_id = OLD.id;
  DELETE FROM entity_sources WHERE entity_id = OLD.id;
END;

CREATE TRIGGER relationships_deleted AFTER DELETE ON relationships BEGIN
  DELETE FROM relationship_sources WHERE relationship_id = OLD.id;
END;

CREATE TRIGGER relationships_of_one_user_inserted BEFORE INSERT ON relationships
WHEN NOT EXISTS (
  SELECT 1 FROM entities AS a, entities AS b WHERE a.id = NEW.source_id AND b.id = NEW.target_id
  AND a.user_id IS NEW.user_id AND b.user_id IS NEW.user_id) BEGIN
  SELECT RAISE(ABORT, 'both ends of a relationship must be entities with its user_id');
END;

CREATE TRIGGER relationships_of_one_user_changed BEFORE UPDATE OF source_id, target_id, user_id
ON relationships
WHEN NOT EXISTS (
  SELECT 1 FROM entities AS a, entities AS b WHERE a.id = NEW.source_id AND b.id = NEW.target_id
  AND a.user_id IS NEW.user_id AND b.user_id IS NEW.user_id) BEGIN
  SELECT RAISE(ABORT, 'both ends of a relationship must be entities with its user_id');
END;

CREATE TRIGGER entities_keep_their_id BEFORE UPDATE OF id, user_id ON entities
WHEN NEW.id IS NOT OLD.id OR NEW.user_id IS NOT OLD.user_id BEGIN
  SELECT RAISE(ABORT, 'the id and user_id of an entity cannot change: delete it and add it anew');
END;

CREATE TRIGGER entities_renamed AFTER UPDATE OF name ON entities
WHEN NEW.name IS NOT OLD.name AND NEW.name_key IS OLD.name_key BEGIN
  UPDATE entities SET name_key = NULL WHERE seq = NEW.seq;
END;

CREATE TRIGGER entity_aliases_renamed AFTER UPDATE OF alias ON entity_aliases
WHEN NEW.alias IS NOT OLD.alias AND NEW.alias_key IS OLD.alias_key BEGIN
  UPDATE entity_aliases SET alias_key = NULL WHERE alias_id = NEW.alias_id;
END;

CREATE TRIGGER graph_of_memories_of_another_user AFTER UPDATE OF user_id ON memories
WHEN NEW.user_id IS NOT OLD.user_id BEGIN
  -- What was read from a memory stays in the graph of the user whom it was about, and says no more
  -- of it: else that user could see what becomes of it.
  DELETE FROM relationship_sources WHERE memory_id = NEW.id;
  DELETE FROM entity_sources WHERE memory_id = NEW.id;
  DELETE FROM entity_aliases WHERE memory_id = NEW.id;
  UPDATE relationships SET closed_by = NULL WHERE closed_by = NEW.id;
END;

CREATE VIEW graph_edges AS
  -- The relationships that can be seen, with the names of their entities: those that stand by
  -- themselves, and those that a memory which is there says. What holds now has no valid_to:
  --   SELECT source, relationship, target FROM graph_edges WHERE valid_to IS NULL;
  SELECT r.seq, r.id,
    (SELECT name FROM entities WHERE id = r.source_id) AS source,
    r.relationship,
    (SELECT name FROM entities WHERE id = r.target_id) AS target,
    r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN r.closed_by IS NULL OR (r.closing_is_undone = 0
      AND EXISTS (SELECT 1 FROM memories AS m WHERE m.id = r.closed_by)) THEN r.valid_to END AS valid_to,
    r.user_id, r.run_id, r.created_at, r.updated_at, r.source_id, r.target_id
  FROM relationships AS r
  WHERE r.by_hand = 1 OR EXISTS (
    SELECT 1 FROM relationship_sources AS x JOIN memories AS m ON m.id = x.memory_id
    WHERE x.relationship_id = r.id AND x.is_undone = 0);

CREATE VIEW graph_entities AS
  -- The entities that can be seen: those that stand by themselves, and those that a memory which is
  -- there, or a relationship that can be seen, speaks of.
  SELECT e.seq, e.id, e.name, e.type, e.confidence, e.user_id, e.run_id, e.created_at, e.updated_at,
    e.name_key
  FROM entities AS e
  WHERE e.by_hand = 1
    OR EXISTS (SELECT 1 FROM entity_sources AS x JOIN memories AS m ON m.id = x.memory_id
      WHERE x.entity_id = e.id AND x.is_undone = 0)
    OR EXISTS (SELECT 1 FROM graph_edges AS g WHERE g.source_id = e.id)
    OR EXISTS (SELECT 1 FROM graph_edges AS g WHERE g.target_id = e.id);
