"""The use cases: one transaction a verb, on the tables of an engine, whichever that is."""
