"""The public feed: its publisher, its checkpoint, and the sessions that it holds."""
