"""Exports that leave through the gateway, and imports that come in."""
