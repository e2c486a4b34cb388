"""Hosted results: what requests do with what a provider made by itself, one table per protocol."""
