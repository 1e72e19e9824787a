CREATE INDEX memories_by_user  -- what one user's session may see, and what was said around it
  ON memories (user_id, created_by_session, timestamp, seq, run_id, archived)
  WHERE user_id IS NOT NULL;

ALTER TABLE scratchpad ADD COLUMN user_id TEXT  /* as in memories: each user has places of its own */;

UPDATE scratchpad SET user_id = (SELECT m.user_id FROM memories AS m WHERE m.seq = scratchpad.seq);

CREATE INDEX scratchpad_by_user ON scratchpad (user_id);

CREATE TRIGGER scratchpad_of_user AFTER INSERT ON scratchpad BEGIN
  UPDATE scratchpad SET user_id = (SELECT user_id FROM memories WHERE seq = NEW.seq)
  WHERE seq = NEW.seq;
END;

CREATE TRIGGER scratchpad_of_another_user AFTER UPDATE OF user_id ON memories
WHEN NEW.user_id IS NOT OLD.user_id BEGIN
  UPDATE scratchpad SET user_id = NEW.user_id WHERE seq = NEW.seq;
END;
