CREATE TABLE tombstones (
  -- What was erased, so that no file, backup or import brings it back: keyed hashes, never a text.
  -- Whoever has this file has the keys too, so what is easily guessed is not hidden by its hash.
  key BLOB NOT NULL         -- random, the same for all that one store erased itself
    CONSTRAINT key_has_16_bytes CHECK (length(key) = 16),
  hash BLOB NOT NULL        -- BLAKE2b with that key, of what `kind` names
    CONSTRAINT hash_has_16_bytes CHECK (length(hash) = 16),
  kind TEXT NOT NULL        -- id: a memory's id; content: what it said, in which user_id's name
    CONSTRAINT kind_is_known CHECK (kind IN ('id', 'content')),
  erased_at TEXT NOT NULL,  -- written like memories.timestamp
  PRIMARY KEY (key, hash)
) STRICT, WITHOUT ROWID;
