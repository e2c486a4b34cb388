"""Relocations: moves of a session that take its uncommitted changes along."""
