"""Copies streams out of a running cluster, and back into an empty one (docs/adr/0085)."""
