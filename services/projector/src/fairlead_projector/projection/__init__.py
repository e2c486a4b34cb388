"""The projection: commits of the log become rows in Postgres."""
