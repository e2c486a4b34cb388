"""The ports in memory: twins for tests, judged by the same contract suite."""
