"""Reverts: what a person may ask, and which files change back."""
