"""Access to NATS: commands to ingest, events and state of a session from its log."""
