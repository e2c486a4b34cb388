"""The life of a call: begin, run, settle."""
