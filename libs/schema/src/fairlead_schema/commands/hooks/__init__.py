"""Commands about webhooks and schedules."""
