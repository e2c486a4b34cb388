"""Expands what a person types: commands become templates, mentions become references."""
