"""The condition of the streams: what differs from the declarations, and how full they are."""
