"""The widgets of the terminal."""
