"""For receivers of webhooks."""
