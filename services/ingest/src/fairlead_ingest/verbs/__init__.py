"""The verbs of ingest, one file each."""
