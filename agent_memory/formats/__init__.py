"""The import and export formats: one module each, and the table of them."""
