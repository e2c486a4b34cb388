"""Context observation: the sources of a location, read and rendered."""
