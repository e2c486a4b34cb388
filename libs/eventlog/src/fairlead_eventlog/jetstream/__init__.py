"""The ports on NATS: one file per adapter."""
