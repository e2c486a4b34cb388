"""Transforms of requests: services and plugins that change what is sent to a provider."""
