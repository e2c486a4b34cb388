"""Adapters that keep one value per key."""
