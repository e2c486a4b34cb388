"""Routes of events: history in pages, replay and live streams."""
