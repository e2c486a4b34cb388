"""Tools that other services register and answer for, over NATS."""
