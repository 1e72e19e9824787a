-- The schema that the migrations make together: a new file is made of it. Written by the tests.
PRAGMA application_id = 1097289061;
PRAGMA user_version = 17;
CREATE TABLE schema_migrations (
  -- Which versions of this schema were applied, and from what.
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,    -- of the file under migrations/
  sha256 TEXT NOT NULL,  -- of its text: a shipped migration never changes
  applied_at TEXT NOT NULL
) STRICT;
CREATE TABLE memories (
  -- What the agent remembers. This table is the truth: the indexes and tags follow it by triggers.
  -- A row needs nothing but its content:
  --   INSERT INTO memories (content) VALUES ('Prefer PostgreSQL for new projects');
  -- Times are UTC text of one width, so that the order of the text is the order of time.

  -- Row number, never used twice: nothing kept about a deleted memory can pass to another one.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The name that users see: 'mem-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('mem-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  -- The text itself.
  content TEXT NOT NULL
    CONSTRAINT content_has_1_to_10000_characters_and_no_nul
    CHECK (length(trim(content)) > 0 AND length(content) <= 10000 AND instr(content, char(0)) = 0),
  -- preference, decision, discovery, pattern, task, bugfix, note, question, insight, or the agent's own.
  category TEXT NOT NULL DEFAULT 'note',
  -- JSON list of lower-case words, such as ["database"].
  tags TEXT NOT NULL DEFAULT '[]'
    CONSTRAINT tags_is_a_json_list CHECK (json_valid(tags) AND json_type(tags) = 'array'),
  -- How long it is meant to live.
  kind TEXT NOT NULL DEFAULT 'learning'
    CONSTRAINT kind_is_core_learning_or_task CHECK (kind IN ('core', 'learning', 'task')),
  -- How much it matters.
  importance TEXT NOT NULL DEFAULT 'medium'
    CONSTRAINT importance_is_high_medium_or_low CHECK (importance IN ('high', 'medium', 'low')),
  -- What sort of record it is.
  memory_type TEXT NOT NULL DEFAULT 'STANDARD'
    CONSTRAINT memory_type_is_standard_procedural_or_graph
    CHECK (memory_type IN ('STANDARD', 'PROCEDURAL', 'GRAPH')),
  -- When it happened or was learned: 2026-01-28T12:00:00.000000Z.
  timestamp TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT timestamp_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(timestamp, 1, 19), '+0 days') IS substr(timestamp, 1, 19)
      AND substr(timestamp, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  -- When this row last changed. Accesses are not changes.
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  -- When a search last gave it as a good answer; NULL for never.
  last_accessed TEXT
    CONSTRAINT last_accessed_is_like_2026_01_28T12_00_00_000000Z
    CHECK (last_accessed IS NULL OR (strftime('%Y-%m-%dT%H:%M:%S', substr(last_accessed, 1, 19), '+0 days') IS substr(last_accessed, 1, 19)
      AND substr(last_accessed, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')),
  -- How often a search gave it as a good answer.
  access_count INTEGER NOT NULL DEFAULT 0
    CONSTRAINT access_count_is_not_negative CHECK (access_count >= 0),
  -- The conversation or run that stored it; 'sqlite3' for a row written by hand.
  created_by_session TEXT NOT NULL DEFAULT 'sqlite3',
  -- Whom it is about; NULL for nobody in particular.
  user_id TEXT,
  -- The run that it belongs to, if any.
  run_id TEXT,
  -- 1 for a memory that is kept but left out of searches.
  archived INTEGER NOT NULL DEFAULT 0
    CONSTRAINT archived_is_0_or_1 CHECK (archived IN (0, 1)),
  -- Of a task: JSON object with status, completed_at, blockers, outcome.
  task_metadata TEXT
    CONSTRAINT task_metadata_is_a_json_object
    CHECK (task_metadata IS NULL OR (json_valid(task_metadata) AND json_type(task_metadata) = 'object')),
  -- JSON object of anything else.
  metadata TEXT NOT NULL DEFAULT '{}'
    CONSTRAINT metadata_is_a_json_object CHECK (json_valid(metadata) AND json_type(metadata) = 'object'),
  -- 1 when stored, one more with each change.
  version INTEGER NOT NULL DEFAULT 1
    CONSTRAINT version_is_positive CHECK (version >= 1)
) STRICT;
CREATE TABLE memory_tags (
  -- Which memories carry a tag. Follows memories.tags by triggers: write there, read here.
  seq INTEGER NOT NULL REFERENCES memories (seq) ON DELETE CASCADE,
  tag TEXT NOT NULL,  -- lower case, without spaces around it
  PRIMARY KEY (seq, tag)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE memory_index USING fts5(
  content, tags, dates, pairs,
  content = 'memory_text', content_rowid = 'seq',
  tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE memory_words USING fts5vocab(memory_index, row);
CREATE TABLE history (
  -- Every memory that was added, updated or deleted, by whatever program. Accesses are not changes.
  -- Old and new values are JSON objects: of an UPDATE the changed columns, of an ADD or a DELETE all.
  -- A column that was NULL is left out; tags, metadata and task_metadata are their JSON as text
  -- (the || '' below keeps SQLite from taking the text for JSON, of which it would drop the nulls).
  change_id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_id TEXT NOT NULL,   -- memories.id, which may be gone
  event TEXT NOT NULL CONSTRAINT event_is_known CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
  changed_at TEXT NOT NULL,  -- when, written like memories.timestamp
  session_id TEXT,           -- which session did it; NULL for a change by another program
  old_values TEXT            -- NULL for an ADD
    CONSTRAINT old_values_is_json CHECK (old_values IS NULL OR json_valid(old_values)),
  new_values TEXT            -- NULL for a DELETE
    CONSTRAINT new_values_is_json CHECK (new_values IS NULL OR json_valid(new_values))
) STRICT;
CREATE TABLE scratchpad (
  -- The hot set: the few memories that an agent is shown at the start of a session.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  entered_at TEXT NOT NULL,  -- when it came in, written like memories.timestamp
  reason TEXT NOT NULL       -- it was just stored, was found often, or was promoted by hand
    CONSTRAINT reason_is_known CHECK (reason IN ('stored', 'accessed', 'promoted'))
, user_id TEXT  /* as in memories: each user has places of its own */) STRICT;
CREATE TABLE agent (
  -- The agent that this file belongs to, in the one row. Times are written like memories.timestamp.
  only_row INTEGER PRIMARY KEY DEFAULT 1 CONSTRAINT there_is_one_agent CHECK (only_row = 1),
  agent_id TEXT NOT NULL
    CONSTRAINT agent_id_has_1_to_64_letters_digits_hyphens_and_underscores
    CHECK (length(agent_id) BETWEEN 1 AND 64 AND agent_id NOT GLOB '*[^A-Za-z0-9_-]*'),
  created_at TEXT NOT NULL,
  last_accessed TEXT NOT NULL,  -- the last store, change or search
  -- 'file': search by keyword; 'vector': by meaning too.
  storage_backend TEXT NOT NULL DEFAULT 'file'
    CONSTRAINT storage_backend_is_known CHECK (storage_backend IN ('file', 'vector')),
  migration_date TEXT,          -- when it moved to 'vector'
  total_queries INTEGER NOT NULL DEFAULT 0,
  total_query_ms REAL NOT NULL DEFAULT 0,  -- divided by total_queries: the mean latency
  embeddings_generated INTEGER NOT NULL DEFAULT 0,
  scratchpad_promotions INTEGER NOT NULL DEFAULT 0,
  -- JSON object of the settings that differ from the defaults.
  config TEXT NOT NULL DEFAULT '{}'
    CONSTRAINT config_is_a_json_object CHECK (json_valid(config) AND json_type(config) = 'object'),
  -- JSON object of the move to 'vector': backup_path, can_rollback, migration_duration_seconds.
  migration TEXT
    CONSTRAINT migration_is_json CHECK (migration IS NULL OR json_valid(migration))
) STRICT;
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
CREATE TABLE embedding_queue (
  -- Memories that were stored, changed, archived or deleted since the embeddings were last looked
  -- at: the library works this off at its next use, and embeds what has no embedding of its text.
  seq INTEGER PRIMARY KEY,
  -- Of the text that the embedder refused, if it did: written like embeddings.text_hash.
  refused_hash BLOB
) STRICT;
CREATE TABLE fingerprints (
  -- A number made of what a memory says, to find one that says the same among many. The library
  -- makes it: NULL for a memory that another program wrote or changed, until the library looks.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  fingerprint INTEGER
) STRICT;
CREATE TABLE recalls (
  -- What searches and contexts gave to the agent of late: it should not be stored again as new.
  -- Rows older than an hour are of no use and go.
  seq INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  recalled_at TEXT NOT NULL  -- the last time, written like memories.timestamp
) STRICT;
CREATE TABLE operations (
  -- What was done to several memories at once, or for good: `undo` takes it as one. What changed a
  -- single memory is in history alone.
  operation_id INTEGER PRIMARY KEY AUTOINCREMENT,
  verb TEXT NOT NULL,             -- store_many, import, archive, tidy, undo, erase, …
  done_at TEXT NOT NULL,          -- written like memories.timestamp
  session_id TEXT,                -- which session did it
  first_change INTEGER NOT NULL,  -- history.change_id of its first change and of its last;
  last_change INTEGER NOT NULL    -- after an erasure there are none: the last is below the first
) STRICT;
CREATE TABLE rejections (
  -- What must not be stored until it is lifted. Only its hash is kept, so that a value that was
  -- erased is not in here either.
  rejection_id INTEGER PRIMARY KEY AUTOINCREMENT,
  words_hash BLOB NOT NULL UNIQUE  -- SHA-256 of its words, in lower case, with a space between them
    CONSTRAINT words_hash_has_32_bytes CHECK (length(words_hash) = 32),
  word_count INTEGER NOT NULL
    CONSTRAINT word_count_is_positive CHECK (word_count >= 1),
  reason TEXT,                     -- why, as far as somebody said so
  rejected_at TEXT NOT NULL        -- written like memories.timestamp
) STRICT;
CREATE TABLE entities (
  -- Whom and what the memories speak of: the nodes of a graph. A row needs nothing but its name:
  --   INSERT INTO entities (name) VALUES ('Alice'), ('Acme');
  -- Times are written like memories.timestamp.
  seq INTEGER PRIMARY KEY,
  -- 'ent-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('ent-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  -- As it is shown. 'USER_ID' is the user that the graph is of.
  name TEXT NOT NULL
    CONSTRAINT name_has_1_to_200_characters CHECK (length(trim(name)) > 0 AND length(name) <= 200),
  -- The name in one case and with single spaces, by which names that mean the same are found. The
  -- library makes it: leave it NULL in a row written by hand.
  name_key TEXT,
  -- What it is: person, company, place, …; NULL for unknown.
  type TEXT,
  -- How sure it is that there is such a thing.
  confidence REAL NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  -- Whose graph it is in; NULL for the agent's own. Names are one of a kind within it.
  user_id TEXT
    CONSTRAINT user_id_is_not_empty CHECK (user_id IS NULL OR length(user_id) > 0),
  -- The run in which it came up first, if any.
  run_id TEXT,
  -- 1: it stands by itself. 0: only as long as a memory in entity_sources, or a relationship in
  -- graph_edges, speaks of it.
  by_hand INTEGER NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(created_at, 1, 19), '+0 days') IS substr(created_at, 1, 19)
      AND substr(created_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')
) STRICT;
CREATE TABLE entity_aliases (
  -- Other names of an entity. Within one user's graph each stands for one entity.
  alias_id INTEGER PRIMARY KEY,
  entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  alias TEXT NOT NULL
    CONSTRAINT alias_has_1_to_200_characters CHECK (length(trim(alias)) > 0 AND length(alias) <= 200),
  alias_key TEXT,  -- written like entities.name_key, and by the library as well
  memory_id TEXT   -- the memory that it was learned from, with which it goes; NULL for none
) STRICT;
CREATE TABLE entity_sources (
  -- Which memories speak of an entity. One that was deleted counts no more, and again once it is
  -- back; when it is erased, the row goes.
  entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  memory_id TEXT NOT NULL,  -- memories.id, which may be gone
  change_id INTEGER,        -- history.change_id of the memory's text that it was read from
  -- 1 while that change of the memory is undone: then the row does not count.
  is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1))
, name TEXT  /* what the memory calls it */
  CONSTRAINT name_has_1_to_200_characters
  CHECK (name IS NULL OR (length(trim(name)) > 0 AND length(name) <= 200)), type TEXT  /* what it says that it is; NULL for nothing */, confidence REAL  /* how sure it says it is; NULL: unsaid */
  CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1), created_at TEXT  /* when it was first read from the memory */, updated_at TEXT  /* when it was last */) STRICT;
CREATE TABLE relationships (
  -- What holds between two entities, and when: the edges of the graph. A fact that changes is not
  -- overwritten: its row gets a valid_to, and another row begins. By hand:
  --   INSERT INTO relationships (source_id, relationship, target_id)
  --   SELECT a.id, 'works_at', b.id FROM entities AS a, entities AS b
  --   WHERE a.name = 'Alice' AND b.name = 'Acme';
  seq INTEGER PRIMARY KEY,
  -- 'rel-' and 12 hexadecimal digits, unless one is given.
  id TEXT NOT NULL UNIQUE DEFAULT ('rel-' || lower(hex(randomblob(6))))
    CONSTRAINT id_has_1_to_128_letters_digits_and_punctuation
    CHECK (length(id) BETWEEN 1 AND 128 AND id NOT GLOB '*[^A-Za-z0-9_.:-]*'),
  source_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  -- A verb in lower case, words joined by _: works_at.
  relationship TEXT NOT NULL
    CONSTRAINT relationship_has_1_to_100_characters
    CHECK (length(trim(relationship)) > 0 AND length(relationship) <= 100),
  target_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  -- How sure it is.
  confidence REAL NOT NULL DEFAULT 1.0
    CONSTRAINT confidence_is_0_to_1 CHECK (confidence BETWEEN 0 AND 1),
  -- What was said of when it holds, in words: 'current', 'next summer'.
  temporal_context TEXT,
  -- From when it holds, and until when: valid_to itself is no more in it. NULL: it still holds.
  valid_from TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT valid_from_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(valid_from, 1, 19), '+0 days') IS substr(valid_from, 1, 19)
      AND substr(valid_from, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  valid_to TEXT
    CONSTRAINT valid_to_is_like_2026_01_28T12_00_00_000000Z
    CHECK (valid_to IS NULL OR (strftime('%Y-%m-%dT%H:%M:%S', substr(valid_to, 1, 19), '+0 days') IS substr(valid_to, 1, 19)
      AND substr(valid_to, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'))
    CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from),
  -- The memory that says that it holds no more, if one does: valid_to counts as long as that is
  -- there. closing_change_id and closing_is_undone are like those of relationship_sources.
  closed_by TEXT,
  closing_change_id INTEGER,
  closing_is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1)),
  -- Whose graph it is in, as both its entities are; NULL for the agent's own.
  user_id TEXT,
  -- The run in which it came up first, if any.
  run_id TEXT,
  -- 1: it stands by itself. 0: only as long as a memory in relationship_sources says so.
  by_hand INTEGER NOT NULL DEFAULT 1
    CONSTRAINT by_hand_is_0_or_1 CHECK (by_hand IN (0, 1)),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT created_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(created_at, 1, 19), '+0 days') IS substr(created_at, 1, 19)
      AND substr(created_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z'),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
    CONSTRAINT updated_at_is_like_2026_01_28T12_00_00_000000Z
    CHECK (strftime('%Y-%m-%dT%H:%M:%S', substr(updated_at, 1, 19), '+0 days') IS substr(updated_at, 1, 19)
      AND substr(updated_at, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]Z')
) STRICT;
CREATE TABLE relationship_sources (
  -- Which memories say that a relationship holds, or held; its columns are those of entity_sources.
  relationship_id TEXT NOT NULL REFERENCES relationships (id) ON DELETE CASCADE,
  memory_id TEXT NOT NULL,
  change_id INTEGER,
  is_undone INTEGER NOT NULL DEFAULT 0
    CONSTRAINT is_undone_is_0_or_1 CHECK (is_undone IN (0, 1))
, confidence REAL  /* how sure the memory says it is */
  CONSTRAINT confidence_is_0_to_1 CHECK (confidence IS NULL OR confidence BETWEEN 0 AND 1), temporal_context TEXT  /* when it holds, in its words */, valid_from TEXT  /* from when, as it says */, valid_to TEXT  /* until when, as far as its run says */
  CONSTRAINT valid_to_is_not_before_valid_from CHECK (valid_to IS NULL OR valid_to >= valid_from), closed_by TEXT  /* like relationships.closed_by */, closing_change_id INTEGER  /* like those there */, closing_is_undone INTEGER  /* like those there */
  NOT NULL DEFAULT 0 CONSTRAINT closing_is_undone_is_0_or_1 CHECK (closing_is_undone IN (0, 1)), created_at TEXT  /* as in entity_sources */, updated_at TEXT  /* as in entity_sources */) STRICT;
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
, dismissed_at TEXT  /* when the memory was kept; NULL: still asked */) STRICT;
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
CREATE INDEX memories_by_session  -- what was said just before and after
  ON memories (created_by_session, timestamp, seq);
CREATE INDEX memories_by_time  -- the newest, and spans of dates
  ON memories (timestamp, seq);
CREATE INDEX memory_tags_by_tag ON memory_tags (tag, seq);
CREATE INDEX history_by_memory ON history (memory_id, change_id);
CREATE UNIQUE INDEX embedding_models_by_state ON embedding_models (state);
CREATE UNIQUE INDEX embeddings_by_memory ON embeddings (seq, model_id);
CREATE INDEX embeddings_by_text ON embeddings (model_id, text_hash);
CREATE INDEX fingerprints_by_value ON fingerprints (fingerprint);
CREATE UNIQUE INDEX entities_by_name ON entities (name_key, coalesce(user_id, ''));
CREATE INDEX entity_aliases_by_entity ON entity_aliases (entity_id);
CREATE INDEX entity_aliases_by_key ON entity_aliases (alias_key);
CREATE INDEX entity_aliases_by_memory ON entity_aliases (memory_id) WHERE memory_id IS NOT NULL;
CREATE UNIQUE INDEX entity_sources_by_entity ON entity_sources (entity_id, memory_id);
CREATE INDEX entity_sources_by_memory ON entity_sources (memory_id);
CREATE INDEX relationships_by_source ON relationships (source_id, relationship);
CREATE INDEX relationships_by_target ON relationships (target_id);
CREATE INDEX relationships_by_closing ON relationships (closed_by) WHERE closed_by IS NOT NULL;
CREATE UNIQUE INDEX relationship_sources_by_relationship
  ON relationship_sources (relationship_id, memory_id);
CREATE INDEX relationship_sources_by_memory ON relationship_sources (memory_id);
CREATE INDEX reviews_by_memory ON reviews (seq);
CREATE INDEX memories_by_user  -- what one user's session may see, and what was said around it
  ON memories (user_id, created_by_session, timestamp, seq, run_id, archived)
  WHERE user_id IS NOT NULL;
CREATE INDEX scratchpad_by_user ON scratchpad (user_id);
CREATE INDEX relationship_sources_by_closing
  ON relationship_sources (closed_by) WHERE closed_by IS NOT NULL;
CREATE INDEX memories_archived  -- how many are archived, and so how many are not, without reading all
  ON memories (archived) WHERE archived <> 0;
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
CREATE VIEW graph_edges AS
  -- The relationships that can be seen, with the names of their entities: those that stand by
  -- themselves, and those that a memory which is there says. What holds now has no valid_to:
  --   SELECT source, relationship, target FROM graph_edges WHERE valid_to IS NULL;
  SELECT r.seq, r.id,
    (SELECT name FROM entities WHERE id = r.source_id) AS source,
    r.relationship,
    (SELECT name FROM entities WHERE id = r.target_id) AS target,
    r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN r.closed_by IS NULL OR (r.closing_is_undone = 0
      AND EXISTS (SELECT 1 FROM memories AS m WHERE m.id = r.closed_by)) THEN r.valid_to END AS valid_to,
    r.user_id, r.run_id, r.created_at, r.updated_at, r.source_id, r.target_id
  FROM relationships AS r
  WHERE r.by_hand = 1 OR EXISTS (
    SELECT 1 FROM relationship_sources AS x JOIN memories AS m ON m.id = x.memory_id
    WHERE x.relationship_id = r.id AND x.is_undone = 0);
CREATE VIEW graph_entities AS
  -- The entities that can be seen: those that stand by themselves, and those that a memory which is
  -- there, or a relationship that can be seen, speaks of.
  SELECT e.seq, e.id, e.name, e.type, e.confidence, e.user_id, e.run_id, e.created_at, e.updated_at,
    e.name_key
  FROM entities AS e
  WHERE e.by_hand = 1
    OR EXISTS (SELECT 1 FROM entity_sources AS x JOIN memories AS m ON m.id = x.memory_id
      WHERE x.entity_id = e.id AND x.is_undone = 0)
    OR EXISTS (SELECT 1 FROM graph_edges AS g WHERE g.source_id = e.id)
    OR EXISTS (SELECT 1 FROM graph_edges AS g WHERE g.target_id = e.id);
CREATE TRIGGER memories_keep_their_id BEFORE UPDATE OF id, seq ON memories
WHEN NEW.id IS NOT OLD.id OR NEW.seq IS NOT OLD.seq BEGIN
  SELECT RAISE(ABORT, 'the id and seq of a memory cannot change: delete it and store it anew');
END;
CREATE TRIGGER memory_tags_of_new AFTER INSERT ON memories
WHEN NEW.tags <> '[]' BEGIN
  INSERT INTO memory_tags (seq, tag)
  SELECT DISTINCT NEW.seq, lower(trim(value)) FROM json_each(NEW.tags)
  WHERE type = 'text' AND trim(value) <> '';
END;
CREATE TRIGGER memory_tags_of_changed AFTER UPDATE OF tags ON memories
WHEN NEW.tags IS NOT OLD.tags BEGIN
  DELETE FROM memory_tags WHERE seq = OLD.seq;
  INSERT INTO memory_tags (seq, tag)
  SELECT DISTINCT NEW.seq, lower(trim(value)) FROM json_each(NEW.tags)
  WHERE type = 'text' AND trim(value) <> '';
END;
CREATE TRIGGER memory_tags_of_deleted AFTER DELETE ON memories BEGIN
  -- The sqlite3 shell leaves foreign keys off, so the cascade alone is not enough.
  DELETE FROM memory_tags WHERE seq = OLD.seq;
END;
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
CREATE TRIGGER history_of_new AFTER INSERT ON memories BEGIN
  INSERT INTO history (memory_id, event, changed_at, session_id, new_values)
  VALUES (NEW.id, 'ADD', NEW.updated_at, NEW.created_by_session, json_patch('{}', json_object(
    'content', NEW.content, 'category', NEW.category, 'tags', NEW.tags || '', 'kind', NEW.kind,
    'importance', NEW.importance, 'memory_type', NEW.memory_type, 'timestamp', NEW.timestamp,
    'created_by_session', NEW.created_by_session, 'user_id', NEW.user_id, 'run_id', NEW.run_id,
    'archived', NEW.archived, 'task_metadata', NEW.task_metadata || '', 'metadata', NEW.metadata || '')));
END;
CREATE TRIGGER history_of_changed AFTER UPDATE OF content, category, tags, kind, importance, memory_type,
  timestamp, created_by_session, user_id, run_id, archived, task_metadata, metadata ON memories
WHEN (OLD.content, OLD.category, OLD.tags, OLD.kind, OLD.importance, OLD.memory_type, OLD.timestamp,
      OLD.created_by_session, OLD.user_id, OLD.run_id, OLD.archived, OLD.task_metadata, OLD.metadata)
  IS NOT (NEW.content, NEW.category, NEW.tags, NEW.kind, NEW.importance, NEW.memory_type, NEW.timestamp,
      NEW.created_by_session, NEW.user_id, NEW.run_id, NEW.archived, NEW.task_metadata, NEW.metadata)
BEGIN
  INSERT INTO history (memory_id, event, changed_at, old_values, new_values)
  VALUES (NEW.id, 'UPDATE',
    CASE WHEN NEW.version IS NOT OLD.version THEN NEW.updated_at ELSE strftime('%Y-%m-%dT%H:%M:%f000Z', 'now') END,
    json_patch('{}', json_object(
      'content', CASE WHEN OLD.content IS NOT NEW.content THEN OLD.content END,
      'category', CASE WHEN OLD.category IS NOT NEW.category THEN OLD.category END,
      'tags', CASE WHEN OLD.tags IS NOT NEW.tags THEN OLD.tags || '' END,
      'kind', CASE WHEN OLD.kind IS NOT NEW.kind THEN OLD.kind END,
      'importance', CASE WHEN OLD.importance IS NOT NEW.importance THEN OLD.importance END,
      'memory_type', CASE WHEN OLD.memory_type IS NOT NEW.memory_type THEN OLD.memory_type END,
      'timestamp', CASE WHEN OLD.timestamp IS NOT NEW.timestamp THEN OLD.timestamp END,
      'created_by_session', CASE WHEN OLD.created_by_session IS NOT NEW.created_by_session THEN OLD.created_by_session END,
      'user_id', CASE WHEN OLD.user_id IS NOT NEW.user_id THEN OLD.user_id END,
      'run_id', CASE WHEN OLD.run_id IS NOT NEW.run_id THEN OLD.run_id END,
      'archived', CASE WHEN OLD.archived IS NOT NEW.archived THEN OLD.archived END,
      'task_metadata', CASE WHEN OLD.task_metadata IS NOT NEW.task_metadata THEN OLD.task_metadata || '' END,
      'metadata', CASE WHEN OLD.metadata IS NOT NEW.metadata THEN OLD.metadata || '' END)),
    json_patch('{}', json_object(
      'content', CASE WHEN OLD.content IS NOT NEW.content THEN NEW.content END,
      'category', CASE WHEN OLD.category IS NOT NEW.category THEN NEW.category END,
      'tags', CASE WHEN OLD.tags IS NOT NEW.tags THEN NEW.tags || '' END,
      'kind', CASE WHEN OLD.kind IS NOT NEW.kind THEN NEW.kind END,
      'importance', CASE WHEN OLD.importance IS NOT NEW.importance THEN NEW.importance END,
      'memory_type', CASE WHEN OLD.memory_type IS NOT NEW.memory_type THEN NEW.memory_type END,
      'timestamp', CASE WHEN OLD.timestamp IS NOT NEW.timestamp THEN NEW.timestamp END,
      'created_by_session', CASE WHEN OLD.created_by_session IS NOT NEW.created_by_session THEN NEW.created_by_session END,
      'user_id', CASE WHEN OLD.user_id IS NOT NEW.user_id THEN NEW.user_id END,
      'run_id', CASE WHEN OLD.run_id IS NOT NEW.run_id THEN NEW.run_id END,
      'archived', CASE WHEN OLD.archived IS NOT NEW.archived THEN NEW.archived END,
      'task_metadata', CASE WHEN OLD.task_metadata IS NOT NEW.task_metadata THEN NEW.task_metadata || '' END,
      'metadata', CASE WHEN OLD.metadata IS NOT NEW.metadata THEN NEW.metadata || '' END)));
  -- The library counts versions itself; a change by hand is counted here.
  UPDATE memories SET version = OLD.version + 1, updated_at = strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')
  WHERE seq = NEW.seq AND NEW.version IS OLD.version;
END;
CREATE TRIGGER scratchpad_of_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM scratchpad WHERE seq = OLD.seq;
END;
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
CREATE TRIGGER fingerprints_of_new AFTER INSERT ON memories BEGIN
  -- After INSERT OR REPLACE the old row may still be there. (An OR REPLACE here would not do: in an
  -- upsert, its own way with conflicts counts.)
  DELETE FROM fingerprints WHERE seq = NEW.seq;
  INSERT INTO fingerprints (seq) VALUES (NEW.seq);
END;
CREATE TRIGGER fingerprints_of_changed AFTER UPDATE OF content, user_id, run_id ON memories
WHEN (NEW.content, NEW.user_id, NEW.run_id) IS NOT (OLD.content, OLD.user_id, OLD.run_id) BEGIN
  UPDATE fingerprints SET fingerprint = NULL WHERE seq = NEW.seq;
END;
CREATE TRIGGER fingerprints_of_deleted AFTER DELETE ON memories BEGIN
  -- The sqlite3 shell leaves foreign keys off, so the cascade alone is not enough.
  DELETE FROM fingerprints WHERE seq = OLD.seq;
END;
CREATE TRIGGER recalls_of_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM recalls WHERE seq = OLD.seq;
END;
CREATE TRIGGER history_of_deleted BEFORE DELETE ON memories BEGIN
  -- Before, because the entry in the scratchpad goes with the memory, and comes back with it: seq
  -- and scratchpad are there for `undo`.
  INSERT INTO history (memory_id, event, changed_at, old_values)
  VALUES (OLD.id, 'DELETE', strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'), json_patch('{}', json_object(
    'content', OLD.content, 'category', OLD.category, 'tags', OLD.tags || '', 'kind', OLD.kind,
    'importance', OLD.importance, 'memory_type', OLD.memory_type, 'timestamp', OLD.timestamp,
    'created_by_session', OLD.created_by_session, 'user_id', OLD.user_id, 'run_id', OLD.run_id,
    'archived', OLD.archived, 'task_metadata', OLD.task_metadata || '', 'metadata', OLD.metadata || '',
    'updated_at', OLD.updated_at, 'last_accessed', OLD.last_accessed,
    'access_count', OLD.access_count, 'version', OLD.version, 'seq', OLD.seq,
    'scratchpad', (SELECT reason || ' ' || entered_at FROM scratchpad WHERE seq = OLD.seq))));
END;
CREATE TRIGGER entities_deleted AFTER DELETE ON entities BEGIN
  DELETE FROM relationships WHERE source_id = OLD.id OR target_id = OLD.id;
  DELETE FROM entity_aliases WHERE entity_id = OLD.id;
  DELETE FROM entity_sources WHERE entity_id = OLD.id;
END;
CREATE TRIGGER relationships_deleted AFTER DELETE ON relationships BEGIN
  DELETE FROM relationship_sources WHERE relationship_id = OLD.id;
END;
CREATE TRIGGER relationships_of_one_user_inserted BEFORE INSERT ON relationships
WHEN NOT EXISTS (
  SELECT 1 FROM entities AS a, entities AS b WHERE a.id = NEW.source_id AND b.id = NEW.target_id
  AND a.user_id IS NEW.user_id AND b.user_id IS NEW.user_id) BEGIN
  SELECT RAISE(ABORT, 'both ends of a relationship must be entities with its user_id');
END;
CREATE TRIGGER relationships_of_one_user_changed BEFORE UPDATE OF source_id, target_id, user_id
ON relationships
WHEN NOT EXISTS (
  SELECT 1 FROM entities AS a, entities AS b WHERE a.id = NEW.source_id AND b.id = NEW.target_id
  AND a.user_id IS NEW.user_id AND b.user_id IS NEW.user_id) BEGIN
  SELECT RAISE(ABORT, 'both ends of a relationship must be entities with its user_id');
END;
CREATE TRIGGER entities_keep_their_id BEFORE UPDATE OF id, user_id ON entities
WHEN NEW.id IS NOT OLD.id OR NEW.user_id IS NOT OLD.user_id BEGIN
  SELECT RAISE(ABORT, 'the id and user_id of an entity cannot change: delete it and add it anew');
END;
CREATE TRIGGER entities_renamed AFTER UPDATE OF name ON entities
WHEN NEW.name IS NOT OLD.name AND NEW.name_key IS OLD.name_key BEGIN
  UPDATE entities SET name_key = NULL WHERE seq = NEW.seq;
END;
CREATE TRIGGER entity_aliases_renamed AFTER UPDATE OF alias ON entity_aliases
WHEN NEW.alias IS NOT OLD.alias AND NEW.alias_key IS OLD.alias_key BEGIN
  UPDATE entity_aliases SET alias_key = NULL WHERE alias_id = NEW.alias_id;
END;
CREATE TRIGGER graph_of_memories_of_another_user AFTER UPDATE OF user_id ON memories
WHEN NEW.user_id IS NOT OLD.user_id BEGIN
  -- What was read from a memory stays in the graph of the user whom it was about, and says no more
  -- of it: else that user could see what becomes of it.
  DELETE FROM relationship_sources WHERE memory_id = NEW.id;
  DELETE FROM entity_sources WHERE memory_id = NEW.id;
  DELETE FROM entity_aliases WHERE memory_id = NEW.id;
  UPDATE relationships SET closed_by = NULL WHERE closed_by = NEW.id;
END;
CREATE TRIGGER reviews_of_deleted AFTER DELETE ON memories BEGIN
  -- Foreign keys are not enforced in other programs. A reasoning may quote both memories.
  DELETE FROM reviews WHERE seq = OLD.seq OR replaced_by = OLD.id;
END;
CREATE TRIGGER scratchpad_of_user AFTER INSERT ON scratchpad BEGIN
  UPDATE scratchpad SET user_id = (SELECT user_id FROM memories WHERE seq = NEW.seq)
  WHERE seq = NEW.seq;
END;
CREATE TRIGGER scratchpad_of_another_user AFTER UPDATE OF user_id ON memories
WHEN NEW.user_id IS NOT OLD.user_id BEGIN
  UPDATE scratchpad SET user_id = NEW.user_id WHERE seq = NEW.seq;
END;
CREATE TRIGGER entity_sources_by_hand AFTER INSERT ON entity_sources WHEN NEW.name IS NULL BEGIN
  -- Of a row that names no more than the memory, that is taken to say what the entity says.
  UPDATE entity_sources SET (name, type, confidence, created_at, updated_at) = (
    SELECT e.name, coalesce(NEW.type, e.type), coalesce(NEW.confidence, nullif(e.confidence, 1.0)),
      coalesce(NEW.created_at, e.created_at), coalesce(NEW.updated_at, e.updated_at)
    FROM entities AS e WHERE e.id = NEW.entity_id)
  WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER relationship_sources_by_hand AFTER INSERT ON relationship_sources
WHEN NEW.valid_from IS NULL AND EXISTS (SELECT 1 FROM relationships WHERE id = NEW.relationship_id)
BEGIN
  UPDATE relationship_sources SET (confidence, valid_from, valid_to, closed_by, closing_change_id,
    closing_is_undone, created_at, updated_at) = (
    SELECT coalesce(NEW.confidence, r.confidence), r.valid_from, r.valid_to, r.closed_by,
      r.closing_change_id, r.closing_is_undone, coalesce(NEW.created_at, r.created_at),
      coalesce(NEW.updated_at, r.updated_at)
    FROM relationships AS r WHERE r.id = NEW.relationship_id)
  WHERE rowid = NEW.rowid;
END;
CREATE TRIGGER relationships_closed_by_hand AFTER UPDATE OF valid_to ON relationships
WHEN NEW.valid_to IS NOT OLD.valid_to AND NEW.closed_by IS NULL AND OLD.closed_by IS NULL BEGIN
  -- What is closed without a memory that says so is closed for all.
  UPDATE relationship_sources
  SET valid_to = coalesce(max(valid_from, NEW.valid_to), NEW.valid_to), closed_by = NULL
  WHERE relationship_id = NEW.id;
END;
