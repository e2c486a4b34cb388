"""One module per command: `configure(parser)` says its options, `run(args)` does it."""
