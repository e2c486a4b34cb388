"""Runs of schedules."""
