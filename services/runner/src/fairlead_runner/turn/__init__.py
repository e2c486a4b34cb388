"""Provider turns: the boundary, the attempt, its conclusion, and compaction."""
