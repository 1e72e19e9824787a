"""The use cases: one transaction per verb, on the tables of any engine."""
