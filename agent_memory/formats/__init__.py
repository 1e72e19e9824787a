"""The formats that memories come in and leave in: one module each, and the table of them."""
