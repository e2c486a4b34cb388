"""Files of a location for clients: listed, searched and read under the same rules as calls."""
