"""Routes of sessions: create, read, list, change, control."""
