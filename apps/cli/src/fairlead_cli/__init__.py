"""The `fairlead` command: the embedded stack, the simulated provider, and what people type."""
