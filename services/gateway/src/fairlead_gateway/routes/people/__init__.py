"""Routes of people: permissions, questions, saved approvals."""
