"""Known providers, and the windows and prices of their models."""
