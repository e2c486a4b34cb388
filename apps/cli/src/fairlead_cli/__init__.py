"""The `fairlead` command: its subcommands, the embedded stack, the simulated provider, the bench."""
