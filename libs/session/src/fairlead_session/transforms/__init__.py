"""Transforms: what a service or a plugin gets of a request, and which changes to it are valid."""
