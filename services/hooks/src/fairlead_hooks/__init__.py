"""The hooks service: posts events to webhooks, and sends the prompts of schedules."""
