"""The ports on NATS JetStream: one file per adapter."""
