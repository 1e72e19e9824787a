CREATE INDEX memories_archived  -- how many are archived, and so how many are not, without reading all
  ON memories (archived) WHERE archived <> 0;
