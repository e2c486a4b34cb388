"""The auditor: reads the live log with the rules of `fairlead verify`, which no service uses."""
