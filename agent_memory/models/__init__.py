"""The records that cross the library's boundary, as Pydantic v2 models (documents A, C, D, E)."""
