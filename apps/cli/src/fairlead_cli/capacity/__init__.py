"""The size of a deployment: what a load needs, and how near a running stack is to its limits."""
