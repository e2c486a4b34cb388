"""Everything that the streams hold of one session or one tenant, and its removal."""
