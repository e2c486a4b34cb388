"""Compaction: when history becomes too large, and the summary that replaces it."""
