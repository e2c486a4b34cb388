"""A provider turn: its boundary, its context, its request, and the events of its stream."""
