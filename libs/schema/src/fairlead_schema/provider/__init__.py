"""Model providers: the canonical request, and the canonical events of the answer."""
