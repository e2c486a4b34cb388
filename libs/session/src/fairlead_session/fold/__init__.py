"""The fold: events become the state of a session. It imports no decider and never rejects an event."""
