"""Ingest: admits commands into session logs and wakes the sessions."""
