"""Commands that callers send over HTTP and NATS, and their answers."""
