"""The routes that the terminal client calls."""
