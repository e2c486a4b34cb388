"""Request and reply over NATS: the server, the answers, and the NATS service API."""
