"""Commands that talk to a session over HTTP."""
