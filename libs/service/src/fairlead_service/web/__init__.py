"""Requests to addresses that somebody else chose: guarded, pinned and bounded."""
