"""One module for each command: `configure(parser)` adds its options, `run(args)` runs it."""
