"""The level and the incarnation of the whole log."""
