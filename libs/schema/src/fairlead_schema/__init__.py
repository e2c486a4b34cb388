"""The contracts of Fairlead: values that mean the same on the wire, in the log and in the core."""
