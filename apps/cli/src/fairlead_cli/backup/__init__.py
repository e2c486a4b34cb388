"""Backups of a deployment: a directory of copied streams, how it is written, verified and brought back."""
