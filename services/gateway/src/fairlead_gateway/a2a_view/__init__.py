"""The view for other agents that speak A2A: a context is a session, and a task is one prompt."""
