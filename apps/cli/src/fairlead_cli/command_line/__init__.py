"""The command line itself: the table of commands, their parser, exit codes, completion."""
