"""How answers of a server are read: over HTTP, as models, and events as models."""
