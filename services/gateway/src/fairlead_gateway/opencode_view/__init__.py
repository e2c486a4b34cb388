"""The view for OpenCode's terminal client: its routes and its events, over the same sessions."""
