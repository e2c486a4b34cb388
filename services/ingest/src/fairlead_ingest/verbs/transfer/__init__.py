"""Verbs that bring sessions from elsewhere, and give their commits away."""
