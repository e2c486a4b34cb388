"""Model provider protocols: pure protocol packages and one HTTP function, without sessions."""
