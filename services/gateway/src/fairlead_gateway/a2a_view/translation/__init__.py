"""The words of A2A for our events, and the other way round. Pure. It loads with the first request."""
