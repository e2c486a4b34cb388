"""The ports in memory, for tests. The same contract suite tests them and JetStream."""
