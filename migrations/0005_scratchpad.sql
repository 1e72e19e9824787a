CREATE TABLE scratchpad (
  -- The hot set: the few memories that an agent is shown at the start of a session.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  entered_at TEXT NOT NULL,  -- when it came in, written like memories.timestamp
  reason TEXT NOT NULL       -- it was just stored, was found often, or was promoted by hand
    CONSTRAINT reason_is_known CHECK (reason IN ('stored', 'accessed', 'promoted'))
) STRICT;

CREATE TRIGGER scratchpad_of_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM scratchpad WHERE seq = OLD.seq;
END;
