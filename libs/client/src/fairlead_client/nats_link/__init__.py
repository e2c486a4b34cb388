"""What both clients need of nats-py: connections, and what comes over them."""
