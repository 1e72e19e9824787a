"""The models that only documents A and C define."""
