"""Verbs of execution: interrupt, resume, compact, budget."""
