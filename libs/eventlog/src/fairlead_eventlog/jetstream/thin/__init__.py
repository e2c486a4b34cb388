"""The thin path through nats-py: requests, publishes and deliveries with little work for each."""
