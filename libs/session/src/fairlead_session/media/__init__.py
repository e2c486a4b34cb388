"""Media: what the bytes of a file are, and how a file is shown to a model."""
