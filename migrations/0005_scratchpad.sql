-- The hot set: the few memories that an agent sees at the start of a session.
CREATE TABLE scratchpad (
  seq        INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  entered_at TEXT NOT NULL,  -- when it came in, as memories.timestamp is written
  reason     TEXT NOT NULL   -- why: it was just stored, was found often, or was promoted by hand
             CONSTRAINT reason_is_known CHECK (reason IN ('stored', 'accessed', 'promoted'))
) STRICT;

CREATE TRIGGER scratchpad_of_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM scratchpad WHERE seq = OLD.seq;
END;
