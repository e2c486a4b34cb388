"""The web as tools may see it: guarded addresses, bounded bodies, readable text."""
