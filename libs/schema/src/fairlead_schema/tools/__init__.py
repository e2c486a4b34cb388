"""Tools: the content and state of calls, and the requests between services."""
