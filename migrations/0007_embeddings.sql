CREATE TABLE embedding_models (
  -- The models whose vectors are in embeddings: the one that searches use, and, during a move, the
  -- one that is moved to. Vectors of two models are never compared.
  model_id INTEGER PRIMARY KEY AUTOINCREMENT,
  model TEXT NOT NULL          -- names the space of the vectors, such as text-embedding-3-small
    CONSTRAINT model_has_1_to_200_characters CHECK (length(model) BETWEEN 1 AND 200),
  dimensions INTEGER NOT NULL  -- numbers in a vector
    CONSTRAINT dimensions_are_1_to_20000 CHECK (dimensions BETWEEN 1 AND 20000),
  embedder TEXT NOT NULL,      -- which embedder makes them: openai, wordllama, …
  base_url TEXT,               -- the service that made them, where it is not the embedder's own
  state TEXT NOT NULL          -- 'active' serves searches, 'building' is not complete yet
    CONSTRAINT state_is_known CHECK (state IN ('building', 'active')),
  is_indexed INTEGER NOT NULL DEFAULT 0  -- 1 while the table embedding_index_<model_id> follows embeddings
    CONSTRAINT is_indexed_is_0_or_1 CHECK (is_indexed IN (0, 1)),
  similarity_floor REAL,       -- cosine below which two texts have nothing to do with each other
  vector_weight REAL NOT NULL DEFAULT 1,  -- how much the cosine counts in a search; the words count 1
  created_at TEXT NOT NULL     -- written like memories.timestamp
) STRICT;

CREATE UNIQUE INDEX embedding_models_by_state ON embedding_models (state);  -- one of each at most

CREATE TABLE embeddings (
  -- What a memory means, as a vector of one signed byte a number: number i is vector[i] * scale.
  -- This table is the truth. embedding_index_<model_id> is a vec0 table over it (sqlite-vec) that
  -- may be missing or dropped: it is built again. No trigger touches it, so that programs without
  -- sqlite-vec can write.
  embedding_id INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  model_id INTEGER NOT NULL REFERENCES embedding_models (model_id) ON DELETE CASCADE,
  text_hash BLOB NOT NULL  -- the first 16 bytes of the SHA-256 of the content that it was made from
    CONSTRAINT text_hash_has_16_bytes CHECK (length(text_hash) = 16),
  scale REAL NOT NULL
    CONSTRAINT scale_is_positive CHECK (scale > 0),
  vector BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX embeddings_by_memory ON embeddings (seq, model_id);

CREATE INDEX embeddings_by_text ON embeddings (model_id, text_hash);  -- the same text is not embedded twice

CREATE TABLE embedding_queue (
  -- Memories that were stored, changed, archived or deleted since the embeddings were last looked
  -- at: the library works this off at its next use, and embeds what has no embedding of its text.
  seq INTEGER PRIMARY KEY,
  -- Of the text that the embedder refused, if it did: written like embeddings.text_hash.
  refused_hash BLOB
) STRICT;

CREATE TRIGGER embedding_queue_of_deleted_embedding AFTER DELETE ON embeddings
-- Not when a whole model goes.
WHEN EXISTS (SELECT 1 FROM embedding_models WHERE model_id = OLD.model_id) BEGIN
  INSERT OR IGNORE INTO embedding_queue (seq) VALUES (OLD.seq);
END;

CREATE TRIGGER embedding_queue_of_new AFTER INSERT ON memories
WHEN EXISTS (SELECT 1 FROM embedding_models) BEGIN
  INSERT OR IGNORE INTO embedding_queue (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER embedding_queue_of_changed AFTER UPDATE OF content, archived ON memories
WHEN (NEW.content IS NOT OLD.content OR NEW.archived IS NOT OLD.archived)
  AND EXISTS (SELECT 1 FROM embedding_models) BEGIN
  INSERT OR IGNORE INTO embedding_queue (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER embedding_queue_of_deleted AFTER DELETE ON memories
WHEN EXISTS (SELECT 1 FROM embedding_models) BEGIN
  DELETE FROM embeddings WHERE seq = OLD.seq;
  INSERT OR IGNORE INTO embedding_queue (seq) VALUES (OLD.seq);
END;
