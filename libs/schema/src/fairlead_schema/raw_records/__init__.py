"""Stored commits as plain JSON: what passes them on to clients needs no model of their events."""
