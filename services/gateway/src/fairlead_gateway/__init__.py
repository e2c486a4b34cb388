"""The HTTP service: it reads Postgres and the log, and sends commands to ingest."""
