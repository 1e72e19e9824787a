"""Search: candidates, evidence, ranking, results."""
