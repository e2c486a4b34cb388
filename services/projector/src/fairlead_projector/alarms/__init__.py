"""What the projector watches beside its rows, and of what it warns."""
