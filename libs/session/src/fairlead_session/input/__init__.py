"""Input: admission, the inbox, promotion."""
