"""Live sessions: one hub for all stream clients of a session in this gateway (docs/adr/0028)."""
