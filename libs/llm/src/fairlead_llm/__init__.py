"""Model provider protocols: pure wire modules and one HTTP function. Knows nothing of sessions."""
