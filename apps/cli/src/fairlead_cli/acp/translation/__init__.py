"""The words of the Agent Client Protocol for our events, and the other way round. Pure."""
