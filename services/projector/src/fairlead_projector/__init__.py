"""The projector: turns the log into read models and the public feed, and wakes stalled sessions."""
