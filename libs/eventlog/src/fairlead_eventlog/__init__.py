"""The durable log of Fairlead: what we ask of it, its JetStream adapter and its in-memory twin."""
