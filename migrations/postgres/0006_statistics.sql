-- What the planner knows of a new table is nothing until autovacuum comes by, a minute later. Until
-- then it takes any index that has a column for one that leads to a row, and a first import slows
-- down with each memory. So the tables are analyzed once they have some rows.

CREATE FUNCTION analyze_new_tables() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  -- Not where they are known already, nor where another transaction is at it.
  IF (SELECT reltuples < 500 FROM pg_class WHERE oid = 'memories'::regclass)
    AND pg_try_advisory_xact_lock(hashtextextended(current_schema || ' analyze', 0)) THEN
    ANALYZE memories, history, fingerprints, scratchpad, memory_tags;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER memories_become_many AFTER INSERT ON memories
FOR EACH ROW WHEN (NEW.seq IN (500, 2000, 8000)) EXECUTE FUNCTION analyze_new_tables();
