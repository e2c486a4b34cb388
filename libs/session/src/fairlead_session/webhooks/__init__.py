"""Webhooks: which events are sent, in which form, and when a failed delivery is tried again."""
