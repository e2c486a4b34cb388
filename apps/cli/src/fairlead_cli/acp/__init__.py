"""The view for editors that speak the Agent Client Protocol: `fairlead acp`, over the Python client."""
