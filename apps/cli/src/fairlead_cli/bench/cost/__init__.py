"""What a turn costs: processor time by process, and counts of messages, commits and switches."""
