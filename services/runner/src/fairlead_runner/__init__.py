"""Runner: drains sessions. It asks the core what to do next, does it, and writes down what happened."""
