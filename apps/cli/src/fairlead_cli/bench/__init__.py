"""Benchmarks: every figure beside its limit, measured in the same run on the same machine."""
