CREATE TABLE reviews (
  -- Memories that a conversation seems to contradict, but not surely enough to delete them: somebody
  -- is to look. What is decided leaves this table; what was done stands in history.
  review_id INTEGER PRIMARY KEY AUTOINCREMENT,
  seq INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,  -- which memory is in question
  version INTEGER NOT NULL,  -- which version of it: another one was not asked about
  replaced_by TEXT,          -- id of the memory that says otherwise, if there is one
  confidence REAL            -- how sure it was, 0 to 1; NULL for unknown
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1),
  reasoning TEXT,            -- why, in the words of the model or rule
  proposed_at TEXT NOT NULL, -- written like memories.timestamp
  session_id TEXT            -- which session proposed it
) STRICT;

CREATE INDEX reviews_by_memory ON reviews (seq);

CREATE TRIGGER reviews_of_deleted AFTER DELETE ON memories BEGIN
  -- Foreign keys are not enforced in other programs. A reasoning may quote both memories.
  DELETE FROM reviews WHERE seq = OLD.seq OR replaced_by = OLD.id;
END;
