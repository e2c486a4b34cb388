"""People: permissions, questions, and the answers to them."""
