"""The memory of each process over many turns: it must not grow."""
