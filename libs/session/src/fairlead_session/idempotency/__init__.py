"""Idempotency keys of commands: what a session remembers, and what a repeat gets."""
