CREATE VIEW dense_scripts (pattern) AS
  -- A GLOB for one character of a script that puts no spaces between words (Thai, Lao, Tibetan,
  -- Burmese, Khmer, Chinese, Japanese) or joins endings to them (Korean).
  SELECT '[' || char(0x0E00) || '-' || char(0x109F) || char(0x1780) || '-' || char(0x17FF)
    || char(0x2E80) || '-' || char(0xD7FF) || char(0xF900) || '-' || char(0xFAFF)
    || char(0xFF66) || '-' || char(0xFFDC) || char(0x20000) || '-' || char(0x3FFFF) || ']';

CREATE VIEW memory_text (seq, content, tags, dates, pairs) AS
  -- What the keyword index holds of each memory: its words, its tags, the words of its date
  -- ('8 may 2023'), and of dense scripts every two characters that stand together, with the other
  -- words of that text set apart from them. Such text is taken in pieces of 64 characters: one
  -- substr() a character over the whole text took 0.6 s for 10,000 of them.
  SELECT seq, content, tags,
    ltrim(substr(timestamp, 9, 2), '0') || ' ' || CASE substr(timestamp, 6, 2)
      WHEN '01' THEN 'january' WHEN '02' THEN 'february' WHEN '03' THEN 'march'
      WHEN '04' THEN 'april' WHEN '05' THEN 'may' WHEN '06' THEN 'june'
      WHEN '07' THEN 'july' WHEN '08' THEN 'august' WHEN '09' THEN 'september'
      WHEN '10' THEN 'october' WHEN '11' THEN 'november' WHEN '12' THEN 'december'
      ELSE '' END || ' ' || substr(timestamp, 1, 4),
    CASE
      -- All ASCII, which is quick to tell, or no dense script in it.
      WHEN length(content || tags) = length(CAST(content || tags AS BLOB)) THEN ''
      WHEN content || tags NOT GLOB '*' || pattern || '*' THEN ''
      ELSE (
        WITH RECURSIVE
          piece (start, text) AS (
            SELECT 1, substr(content || ' ' || tags, 1, 65)
            UNION ALL
            SELECT start + 64, substr(content || ' ' || tags, start + 64, 65) FROM piece
            WHERE start + 64 <= length(content || ' ' || tags)),
          place (i) AS (
            SELECT 1
            UNION ALL
            SELECT i + 1 FROM place WHERE i < 64),
          letter (here, next) AS (
            SELECT substr(text, i, 1), substr(text, i + 1, 1)
            FROM piece CROSS JOIN place WHERE i <= length(text) ORDER BY start, i)
        SELECT group_concat(
          CASE WHEN here NOT GLOB pattern THEN here
            ELSE ' ' || here || CASE WHEN next GLOB pattern THEN next ELSE '' END || ' ' END, '')
        FROM letter)
    END
  FROM memories, dense_scripts;

-- The keyword index. Any SQLite with FTS5 can search it:
--   SELECT m.* FROM memory_index i JOIN memories m ON m.seq = i.rowid
--   WHERE memory_index MATCH 'database' ORDER BY i.rank LIMIT 5;
-- Marks (Mn, Mc) count as letters, or the vowels of Thai and Hindi would cut their words in pieces.
CREATE VIRTUAL TABLE memory_index USING fts5(
  content, tags, dates, pairs,
  content = 'memory_text', content_rowid = 'seq',
  tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

-- Each word of the index, and in how many memories it stands (column doc).
CREATE VIRTUAL TABLE memory_words USING fts5vocab(memory_index, row);

CREATE TRIGGER memory_index_of_new AFTER INSERT ON memories BEGIN
  INSERT INTO memory_index (rowid, content, tags, dates, pairs)
  SELECT seq, content, tags, dates, pairs FROM memory_text WHERE seq = NEW.seq;
END;

CREATE TRIGGER memory_index_of_changing BEFORE UPDATE OF content, tags, timestamp ON memories BEGIN
  -- FTS5 forgets a text only when it is told it again, so the old one is told before it is gone.
  INSERT INTO memory_index (memory_index, rowid, content, tags, dates, pairs)
  SELECT 'delete', seq, content, tags, dates, pairs FROM memory_text WHERE seq = OLD.seq;
END;

CREATE TRIGGER memory_index_of_changed AFTER UPDATE OF content, tags, timestamp ON memories BEGIN
  INSERT INTO memory_index (rowid, content, tags, dates, pairs)
  SELECT seq, content, tags, dates, pairs FROM memory_text WHERE seq = NEW.seq;
END;

CREATE TRIGGER memory_index_of_deleting BEFORE DELETE ON memories BEGIN
  INSERT INTO memory_index (memory_index, rowid, content, tags, dates, pairs)
  SELECT 'delete', seq, content, tags, dates, pairs FROM memory_text WHERE seq = OLD.seq;
END;
