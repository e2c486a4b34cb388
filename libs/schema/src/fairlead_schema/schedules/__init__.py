"""Schedules: prompts at a time, or again and again."""
