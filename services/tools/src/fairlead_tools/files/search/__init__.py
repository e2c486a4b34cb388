"""Searches files by name and by content."""
