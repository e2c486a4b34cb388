"""A stack on this machine: what it consists of, its programs, and its run in the foreground."""
