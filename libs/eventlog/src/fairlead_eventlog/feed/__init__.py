"""The feed, as services read it."""
