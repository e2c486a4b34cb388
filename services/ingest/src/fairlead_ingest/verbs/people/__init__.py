"""Verbs of people: permissions, questions, approvals."""
