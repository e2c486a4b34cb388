"""All services in one process, for small machines (`fairlead up --solo`)."""
