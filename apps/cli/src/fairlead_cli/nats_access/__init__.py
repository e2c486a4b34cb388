"""Who may connect to NATS: the keys of services and principals, and the callout for keys of HTTP."""
