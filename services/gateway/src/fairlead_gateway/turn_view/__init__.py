"""One turn of a session as a view of another protocol reads it: its events, its progress, its end."""
