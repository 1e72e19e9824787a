-- The event log: of a file, what events.jsonl beside it tells. It is a diary for who watches, and no
-- part of the memory: a move leaves it behind, and only the youngest 20 MB are kept.
CREATE TABLE events (
  agent_id text COLLATE "C" NOT NULL DEFAULT this_agent(),
  -- In the order in which they were committed: the microsecond of that, or the next number that is
  -- free. So none is given twice, and a sequence, shared by all agents, would tell what others do.
  event_id bigint NOT NULL,
  -- As it stands in a line of events.jsonl. Another program may write anything here.
  event json NOT NULL,
  PRIMARY KEY (agent_id, event_id)
);
