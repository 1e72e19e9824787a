-- What memories mean, as vectors, and the index of their codes: see migrations/0007_embeddings.sql.

CREATE TABLE embedding_models (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  model_id bigint NOT NULL DEFAULT next_number('embedding_models'),
  model text COLLATE "C" NOT NULL
    CONSTRAINT model_has_1_to_200_characters CHECK (length(model) BETWEEN 1 AND 200),
  dimensions bigint NOT NULL
    CONSTRAINT dimensions_are_1_to_20000 CHECK (dimensions BETWEEN 1 AND 20000),
  embedder text COLLATE "C" NOT NULL,
  base_url text COLLATE "C",
  state text COLLATE "C" NOT NULL
    CONSTRAINT state_is_known CHECK (state IN ('building', 'active')),
  is_indexed smallint NOT NULL DEFAULT 0
    CONSTRAINT is_indexed_is_0_or_1 CHECK (is_indexed IN (0, 1)),
  similarity_floor double precision,
  vector_weight double precision NOT NULL DEFAULT 1,
  created_at text COLLATE "C" NOT NULL,
  PRIMARY KEY (agent_id, model_id)
);

CREATE UNIQUE INDEX embedding_models_by_state ON embedding_models (agent_id, state);

CREATE TRIGGER embedding_models_keep_highest_number AFTER DELETE ON embedding_models
REFERENCING OLD TABLE AS deleted_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_highest_number('model_id');

CREATE TABLE embeddings (
  -- One signed byte a number: number i is vector[i] * scale.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  model_id bigint NOT NULL,
  text_hash bytea NOT NULL
    CONSTRAINT text_hash_has_16_bytes CHECK (length(text_hash) = 16),
  scale double precision NOT NULL
    CONSTRAINT scale_is_positive CHECK (scale > 0),
  vector bytea NOT NULL,
  PRIMARY KEY (agent_id, model_id, seq),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE,
  FOREIGN KEY (agent_id, model_id) REFERENCES embedding_models (agent_id, model_id)
    ON DELETE CASCADE
);

ALTER TABLE embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;  -- bytes that do not compress

CREATE INDEX embeddings_by_memory ON embeddings (agent_id, seq);

CREATE INDEX embeddings_by_text ON embeddings (agent_id, model_id, text_hash);

CREATE TABLE embedding_queue (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  refused_hash bytea,
  PRIMARY KEY (agent_id, seq)
);

CREATE FUNCTION queue_embedding() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  changed bigint := CASE WHEN TG_OP = 'DELETE' THEN OLD.seq ELSE NEW.seq END;
BEGIN
  IF EXISTS (SELECT 1 FROM embedding_models WHERE agent_id = this_agent()) THEN
    INSERT INTO embedding_queue (seq) VALUES (changed) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER embedding_queue_of_new AFTER INSERT ON memories
FOR EACH ROW EXECUTE FUNCTION queue_embedding();

CREATE TRIGGER embedding_queue_of_changed AFTER UPDATE OF content, archived ON memories
FOR EACH ROW WHEN (NEW.content <> OLD.content OR NEW.archived <> OLD.archived)
EXECUTE FUNCTION queue_embedding();

CREATE TRIGGER embedding_queue_of_deleted AFTER DELETE ON memories
FOR EACH ROW EXECUTE FUNCTION queue_embedding();

CREATE FUNCTION queue_deleted_embedding() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- Not when a whole model goes.
  IF EXISTS (SELECT 1 FROM embedding_models
      WHERE agent_id = OLD.agent_id AND model_id = OLD.model_id) THEN
    INSERT INTO embedding_queue (agent_id, seq) VALUES (OLD.agent_id, OLD.seq)
    ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER embedding_queue_of_deleted_embedding AFTER DELETE ON embeddings
FOR EACH ROW EXECUTE FUNCTION queue_deleted_embedding();

CREATE TABLE embedding_cells (
  -- The cells of a model's index. Cell 0 has no centre: what is in it was not sorted yet.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  model_id bigint NOT NULL,
  cell bigint NOT NULL,
  centre bytea NOT NULL,
  made_of bigint NOT NULL,
  retired smallint NOT NULL,
  PRIMARY KEY (agent_id, model_id, cell),
  FOREIGN KEY (agent_id, model_id) REFERENCES embedding_models (agent_id, model_id)
    ON DELETE CASCADE
);

CREATE TABLE embedding_codes (
  -- The short code of a vector, in its cell. Made of embeddings, and made again.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  model_id bigint NOT NULL,
  cell bigint NOT NULL,
  seq bigint NOT NULL,
  code bit varying NOT NULL,
  PRIMARY KEY (agent_id, model_id, cell, seq),
  CONSTRAINT embedding_codes_by_memory UNIQUE (agent_id, model_id, seq),
  FOREIGN KEY (agent_id, model_id, seq) REFERENCES embeddings (agent_id, model_id, seq)
    ON DELETE CASCADE
);

ALTER TABLE embedding_codes ALTER COLUMN code SET STORAGE EXTERNAL;
