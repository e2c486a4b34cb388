"""Measures what the tools service does with the files of a location."""
