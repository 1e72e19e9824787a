"""The formats of other programs, which are read and never written: one module each."""
