-- What was dismissed stays, so that `undo` can ask it again.
ALTER TABLE reviews ADD COLUMN dismissed_at TEXT  /* when the memory was kept; NULL: still asked */;
