"""Routes of webhooks and schedules."""
