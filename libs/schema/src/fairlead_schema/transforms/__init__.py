"""Transforms of model requests: their registrations, the question to a transform, and its answer."""
