"""`fairlead chat`: a session in the terminal. `view` is pure, `screen` draws it, the rest connects both."""
