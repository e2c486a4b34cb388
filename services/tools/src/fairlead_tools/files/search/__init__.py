"""Search in files: by name and by content."""
