"""The shards that one process holds: their connection, and their common transactions."""
