"""The registry of tools: what may be called, and which registration answers."""
