"""Verbs of input: prompt, and pending input."""
