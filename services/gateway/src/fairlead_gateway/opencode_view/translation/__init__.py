"""Pure translation: folded sessions and fragments become the client's messages, parts and events."""
