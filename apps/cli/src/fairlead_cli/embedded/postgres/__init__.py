"""The embedded Postgres: its server process, its user, its socket and its roles."""
