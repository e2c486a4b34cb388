"""Tools: what a call returns, and how services ask for calls."""
