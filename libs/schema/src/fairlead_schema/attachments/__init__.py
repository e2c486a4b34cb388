"""Attachments: references to stored content, and requests to take content."""
