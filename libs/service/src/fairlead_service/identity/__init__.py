"""Identity of callers: keys, tokens, and the authenticator that turns them into principals."""
