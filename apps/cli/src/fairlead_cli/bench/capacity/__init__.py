"""What a deployment needs by its load: processor time of each act, and bytes that stay of it."""
