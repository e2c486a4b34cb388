"""Traces: spans of what a process does, sent to a collector if one is configured (docs/adr/0086)."""
