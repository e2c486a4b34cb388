"""One process imports every service and forks for each start: see docs/adr/0037."""
