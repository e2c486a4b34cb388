"""Values that events and answers share. Readers of answers load no event for them."""
