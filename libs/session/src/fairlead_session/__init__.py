"""The pure core: what a session is, becomes, and does next. No clock, no randomness, no I/O."""
