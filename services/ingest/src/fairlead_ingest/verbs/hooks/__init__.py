"""The verbs of webhooks and schedules."""
