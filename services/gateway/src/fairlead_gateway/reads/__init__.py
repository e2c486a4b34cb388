"""Reads from Postgres: queries, rows, cursors."""
