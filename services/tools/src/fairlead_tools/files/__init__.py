"""Files of a location: resolving paths, reading, searching and changing files."""
