"""What the terminal shows, folded from events. Nothing here reads a clock, a file or a socket."""
