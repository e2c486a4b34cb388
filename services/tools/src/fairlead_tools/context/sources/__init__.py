"""Context sources: each observes one thing about a location and renders it for the model."""
