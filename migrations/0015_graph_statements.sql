-- What each memory says of an entity and of a relationship, beside what all of them say together,
-- which the rows of entities and relationships have: a run's session is told what its own memories
-- say. Of rows from before it is not known who said what: each of their memories is taken to say
-- all of it, but for the words about the time, which are kept where only one memory says so.

ALTER TABLE entity_sources ADD COLUMN name TEXT  /* what the memory calls it */
  CONSTRAINT name_has_1_to_200_characters
  CHECK (name IS NULL OR (length(trim(name)) > 0 AND length(name) <= 200));

ALTER TABLE entity_sources ADD COLUMN type TEXT  /* what it says that it is; NULL for nothing */;

ALTER TABLE entity_sources ADD COLUMN confidence REAL  /* how sure it says it is; NULL: unsaid */
  CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1);

ALTER TABLE entity_sources ADD COLUMN created_at TEXT  /* when it was first read from the memory */;

ALTER TABLE entity_sources ADD COLUMN updated_at TEXT  /* when it was last */;

ALTER TABLE relationship_sources ADD COLUMN confidence REAL  /* how sure the memory says it is */
  CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1);

ALTER TABLE relationship_sources ADD COLUMN temporal_context TEXT  /* when it holds, in its words */;

ALTER TABLE relationship_sources ADD COLUMN valid_from TEXT  /* from when, as it says */;

ALTER TABLE relationship_sources ADD COLUMN valid_to TEXT  /* until when, as far as its run says */
  CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from);

ALTER TABLE relationship_sources ADD COLUMN closed_by TEXT  /* like relationships.closed_by */;

ALTER TABLE relationship_sources ADD COLUMN closing_change_id INTEGER  /* like those there */;

ALTER TABLE relationship_sources ADD COLUMN closing_is_undone INTEGER  /* like those there */
  NOT NULL DEFAULT 0 CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1));

ALTER TABLE relationship_sources ADD COLUMN created_at TEXT  /* as in entity_sources */;

ALTER TABLE relationship_sources ADD COLUMN updated_at TEXT  /* as in entity_sources */;

UPDATE entity_sources SET (name, type, confidence, created_at, updated_at) = (
  SELECT e.name, e.type, nullif(e.confidence, 1.0), e.created_at, e.updated_at FROM entities AS e
  WHERE e.id = entity_sources.entity_id);

UPDATE relationship_sources SET (confidence, temporal_context, valid_from, valid_to, closed_by,
  closing_change_id, closing_is_undone, created_at, updated_at) = (
  SELECT r.confidence, CASE WHEN 1 = (SELECT count(*) FROM relationship_sources AS x
      WHERE x.relationship_id = r.id) THEN r.temporal_context END,
    r.valid_from, r.valid_to, r.closed_by, r.closing_change_id, r.closing_is_undone, r.created_at,
    r.updated_at FROM relationships AS r WHERE r.id = relationship_sources.relationship_id)
WHERE relationship_id IN (SELECT id FROM relationships);

CREATE INDEX relationship_sources_by_closing
  ON relationship_sources (closed_by) WHERE closed_by IS NOT NULL;

CREATE TRIGGER entity_sources_by_hand AFTER INSERT ON entity_sources WHEN NEW.name IS NULL BEGIN
  -- Of a row that names no more than the memory, that is taken to say what the entity says.
  UPDATE entity_sources SET (name, type, confidence, created_at, updated_at) = (
    SELECT e.name, coalesce(NEW.type, e.type), coalesce(NEW.confidence, nullif(e.confidence, 1.0)),
      coalesce(NEW.created_at, e.created_at), coalesce(NEW.updated_at, e.updated_at)
    FROM entities AS e WHERE e.id = NEW.entity_id)
  WHERE rowid = NEW.rowid;
END;

CREATE TRIGGER relationship_sources_by_hand AFTER INSERT ON relationship_sources
WHEN NEW.valid_from IS NULL AND EXISTS (SELECT 1 FROM relationships WHERE id = NEW.relationship_id)
BEGIN
  UPDATE relationship_sources SET (confidence, valid_from, valid_to, closed_by, closing_change_id,
    closing_is_undone, created_at, updated_at) = (
    SELECT coalesce(NEW.confidence, r.confidence), r.valid_from, r.valid_to, r.closed_by,
      r.closing_change_id, r.closing_is_undone, coalesce(NEW.created_at, r.created_at),
      coalesce(NEW.updated_at, r.updated_at)
    FROM relationships AS r WHERE r.id = NEW.relationship_id)
  WHERE rowid = NEW.rowid;
END;

CREATE TRIGGER relationships_closed_by_hand AFTER UPDATE OF valid_to ON relationships
WHEN NEW.valid_to IS NOT OLD.valid_to AND NEW.closed_by IS NULL AND OLD.closed_by IS NULL BEGIN
  -- What is closed without a memory that says so is closed for all.
  UPDATE relationship_sources
  SET valid_to = coalesce(max(valid_from, NEW.valid_to), NEW.valid_to), closed_by = NULL
  WHERE relationship_id = NEW.id;
END;
