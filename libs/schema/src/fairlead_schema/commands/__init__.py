"""Commands: what callers ask for over HTTP and NATS, and what they get back."""
