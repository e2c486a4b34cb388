"""Observes the context of a location: reads and renders its sources."""
