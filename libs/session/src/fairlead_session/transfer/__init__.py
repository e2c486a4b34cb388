"""Transfer of sessions: the export file, its verification, and the rules of a replay."""
