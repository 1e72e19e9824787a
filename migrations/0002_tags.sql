CREATE TABLE memory_tags (
  -- Which memories carry a tag. Follows memories.tags by triggers: write there, read here.
  seq INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  tag TEXT NOT NULL,  -- lower case, without spaces around it
  PRIMARY KEY (seq, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_tags_by_tag ON memory_tags (tag, seq);

CREATE TRIGGER memory_tags_of_new AFTER INSERT ON memories
WHEN NEW.tags <> '[]' BEGIN
  INSERT INTO memory_tags (seq, tag)
  SELECT DISTINCT NEW.seq, lower(trim(value)) FROM json_each(NEW.tags)
  WHERE type = 'text' AND trim(value) <> '';
END;

CREATE TRIGGER memory_tags_of_changed AFTER UPDATE OF tags ON memories
WHEN NEW.tags IS NOT OLD.tags BEGIN
  DELETE FROM memory_tags WHERE seq = OLD.seq;
  INSERT INTO memory_tags (seq, tag)
  SELECT DISTINCT NEW.seq, lower(trim(value)) FROM json_each(NEW.tags)
  WHERE type = 'text' AND trim(value) <> '';
END;

CREATE TRIGGER memory_tags_of_deleted AFTER DELETE ON memories BEGIN
  -- The sqlite3 shell leaves foreign keys off, so the cascade alone is not enough.
  DELETE FROM memory_tags WHERE seq = OLD.seq;
END;
