"""The roles of Fairlead in Postgres: their names, their logins and their rights."""
