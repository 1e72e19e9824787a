"""The lifecycle of stored memories: archive, tidy, undo, snapshots."""
