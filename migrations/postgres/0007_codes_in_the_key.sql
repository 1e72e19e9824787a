-- A search by meaning reads the codes of some cells. Vectors come in the order of their memories, so
-- that a cell's codes are all over the table: to fetch them one by one took two thirds of the time of
-- a search of 1,000,000. In the key a cell's codes stand side by side.

ALTER TABLE embedding_codes DROP CONSTRAINT embedding_codes_pkey;

ALTER TABLE embedding_codes ADD PRIMARY KEY (agent_id, model_id, cell, seq) INCLUDE (code);
