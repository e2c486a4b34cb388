"""Access to the web: guarded addresses, bounded bodies, pages as text."""
