"""Tools: executes tool calls under permission policy and observes the locations it serves."""
