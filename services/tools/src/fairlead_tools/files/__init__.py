"""Files of a location: where paths lead, how they are read, searched and changed."""
