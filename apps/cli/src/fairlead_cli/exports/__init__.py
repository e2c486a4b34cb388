"""Exported files: verified on this machine, and carried to and from a gateway."""
