"""Verbs that create, read and change a session itself."""
