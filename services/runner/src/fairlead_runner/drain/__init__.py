"""Draining a session: moves, ownership, and the writes of a drain."""
