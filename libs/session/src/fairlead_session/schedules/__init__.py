"""Schedules: when a prompt is due, and which ids its run has."""
