"""Commands that show what there is, and change nothing."""
