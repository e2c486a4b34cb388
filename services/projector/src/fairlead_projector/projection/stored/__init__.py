"""Stored sessions: their rows while a file holds the log, and their rows from such a file."""
