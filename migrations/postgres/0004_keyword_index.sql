-- The keyword index: see migrations/0003_keyword_index.sql. A GIN index would serve no search here,
-- because its operators are not leakproof. So a word's memories are rows of a table, in the order
-- of its key.

CREATE TABLE memory_text (
  -- The words of a memory as the index holds them, in their order: on a line each those of its
  -- content, its tags, its date, and the pairs of dense scripts. The library makes them
  -- (agent_memory/storage/indexed_text.py): NULL for a memory that another program wrote or
  -- changed, until the library looks.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  seq bigint NOT NULL,
  tokens text COLLATE "C",
  PRIMARY KEY (agent_id, seq),
  FOREIGN KEY (agent_id, seq) REFERENCES memories (agent_id, seq) ON DELETE CASCADE
);

CREATE INDEX memory_text_missing ON memory_text (agent_id, seq) WHERE tokens IS NULL;

CREATE TABLE memory_index (
  -- In which memories a word stands, how often, and how many words each has in all.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  word text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  count integer NOT NULL,
  size integer NOT NULL,
  PRIMARY KEY (agent_id, word, seq) INCLUDE (count, size)
);

CREATE TABLE memory_words (
  -- Each word of the index, and in how many memories it stands.
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  word text COLLATE "C" NOT NULL,
  doc integer NOT NULL,
  PRIMARY KEY (agent_id, word)
) WITH (fillfactor = 80);  -- with each memory that is stored, thirty counts go up

CREATE TABLE memory_index_size (
  -- How many memories are in the index, and how many words they have together.
  agent_id text COLLATE "C" PRIMARY KEY DEFAULT this_agent(),
  memories bigint NOT NULL,
  words bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION words_in(tokens text) RETURNS SETOF text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  -- A word that is too long for the key of an index, such as a text without spaces, is cut: see
  -- key_of in agent_memory/storage/postgres/postings.py.
  SELECT CASE WHEN octet_length(word) <= 1000 THEN word
    ELSE left(word, 200) || '.' || encode(sha256(convert_to(word, 'UTF8')), 'hex') END
  FROM string_to_table(translate(tokens, E'\n', ' '), ' ') AS word
$$;

CREATE FUNCTION keep_words() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- After words were made, forgotten, or deleted with their memory.
BEGIN
  MERGE INTO memory_words AS w USING (
    SELECT o.agent_id, i.word, count(DISTINCT o.seq) AS doc
    FROM old_rows AS o, words_in(o.tokens) AS i (word) GROUP BY o.agent_id, i.word) AS gone
  ON w.agent_id = gone.agent_id AND w.word = gone.word
  WHEN MATCHED AND w.doc <= gone.doc THEN DELETE
  WHEN MATCHED THEN UPDATE SET doc = w.doc - gone.doc;
  DELETE FROM memory_index AS i USING (
    SELECT DISTINCT o.agent_id, i.word, o.seq FROM old_rows AS o, words_in(o.tokens) AS i (word)
    ) AS gone
  WHERE i.agent_id = gone.agent_id AND i.word = gone.word AND i.seq = gone.seq;
  UPDATE memory_index_size AS s
  SET memories = s.memories - gone.memories, words = s.words - gone.words
  FROM (
    SELECT o.agent_id, count(DISTINCT o.seq) AS memories, count(*) AS words
    FROM old_rows AS o, words_in(o.tokens) GROUP BY o.agent_id) AS gone
  WHERE s.agent_id = gone.agent_id;
  IF TG_OP = 'UPDATE' THEN
    INSERT INTO memory_index (agent_id, word, seq, count, size)
    SELECT n.agent_id, i.word, n.seq, count(*),
      sum(count(*)) OVER (PARTITION BY n.agent_id, n.seq)
    FROM new_rows AS n, words_in(n.tokens) AS i (word) GROUP BY n.agent_id, n.seq, i.word;
    INSERT INTO memory_words AS w (agent_id, word, doc)
    SELECT n.agent_id, i.word, count(DISTINCT n.seq)
    FROM new_rows AS n, words_in(n.tokens) AS i (word) GROUP BY n.agent_id, i.word
    ON CONFLICT (agent_id, word) DO UPDATE SET doc = w.doc + excluded.doc;
    INSERT INTO memory_index_size AS s (agent_id, memories, words)
    SELECT n.agent_id, count(DISTINCT n.seq), count(*)
    FROM new_rows AS n, words_in(n.tokens) GROUP BY n.agent_id
    ON CONFLICT (agent_id) DO UPDATE
    SET memories = s.memories + excluded.memories, words = s.words + excluded.words;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER memory_index_of_changed AFTER UPDATE ON memory_text
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_words();

CREATE TRIGGER memory_index_of_deleted AFTER DELETE ON memory_text
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT
EXECUTE FUNCTION keep_words();

CREATE FUNCTION forget_words() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO memory_text (agent_id, seq) VALUES (NEW.agent_id, NEW.seq);
  ELSE
    UPDATE memory_text SET tokens = NULL WHERE agent_id = NEW.agent_id AND seq = NEW.seq;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER memory_text_of_new AFTER INSERT ON memories
FOR EACH ROW EXECUTE FUNCTION forget_words();

CREATE TRIGGER memory_text_of_changed AFTER UPDATE OF content, tags, timestamp ON memories
FOR EACH ROW WHEN ((NEW.content, NEW.tags, NEW.timestamp)
  IS DISTINCT FROM (OLD.content, OLD.tags, OLD.timestamp))
EXECUTE FUNCTION forget_words();

CREATE FUNCTION count_phrase(tokens text, phrase text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- How often words stand side by side. With two spaces between words, one can end a phrase and
  -- begin the next.
  SELECT (length(padded) - length(replace(padded, sought, ''))) / length(sought)
  FROM (SELECT ' ' || replace(replace(tokens, E'\n', ' . '), ' ', '  ') || ' ',
    ' ' || replace(phrase, ' ', '  ') || ' ') AS spaced (padded, sought)
$$;
