"""Benchmarks: each figure and the limit to compare it with come from the same run."""
