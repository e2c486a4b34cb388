"""The whole stack on one machine: servers from wheels, services as processes, one supervisor."""
