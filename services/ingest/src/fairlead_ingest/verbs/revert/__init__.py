"""Verbs of reverts."""
