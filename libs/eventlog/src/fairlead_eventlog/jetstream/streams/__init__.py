"""Adapters that keep their messages in streams."""
