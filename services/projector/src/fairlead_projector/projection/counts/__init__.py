"""Counts of what a session used and changed."""
