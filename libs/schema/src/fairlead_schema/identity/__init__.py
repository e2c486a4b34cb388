"""Identity: who a caller is, and what a caller may do. HTTP and NATS share it."""
