CREATE TABLE fingerprints (
  -- A number made of what a memory says, to find one that says the same among many. The library
  -- makes it: NULL for a memory that another program wrote or changed, until the library looks.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  fingerprint INTEGER
) STRICT;

CREATE INDEX fingerprints_by_value ON fingerprints (fingerprint);

INSERT INTO fingerprints (seq) SELECT seq FROM memories;

CREATE TRIGGER fingerprints_of_new AFTER INSERT ON memories BEGIN
  -- After INSERT OR REPLACE the old row may still be there. (An OR REPLACE here would not do: in an
  -- upsert, its own way with conflicts counts.)
  DELETE FROM fingerprints WHERE seq = NEW.seq;
  INSERT INTO fingerprints (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER fingerprints_of_changed AFTER UPDATE OF content, user_id, run_id ON memories
WHEN (NEW.content, NEW.user_id, NEW.run_id) IS NOT (OLD.content, OLD.user_id, OLD.run_id) BEGIN
  UPDATE fingerprints SET fingerprint = NULL WHERE seq = NEW.seq;
END;

CREATE TRIGGER fingerprints_of_deleted AFTER DELETE ON memories BEGIN
  -- The sqlite3 shell leaves foreign keys off, so the cascade alone is not enough.
  DELETE FROM fingerprints WHERE seq = OLD.seq;
END;

CREATE TABLE recalls (
  -- What searches and contexts gave to the agent of late: it should not be stored again as new.
  -- Rows older than an hour are of no use and go.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  recalled_at TEXT NOT NULL  -- the last time, written like memories.timestamp
) STRICT;

CREATE TRIGGER recalls_of_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM recalls WHERE seq = OLD.seq;
END;
