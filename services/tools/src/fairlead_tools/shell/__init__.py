"""The shell: runs a command, hears what it says, and leaves nothing of it behind."""
