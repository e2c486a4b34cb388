"""Ingest: admits commands into session logs and wakes whoever drains them."""
