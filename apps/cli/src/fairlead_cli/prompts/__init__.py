"""Prompts from the terminal, and their answers."""
