"""Webhooks: what is registered, what is sent, and how it is signed."""
