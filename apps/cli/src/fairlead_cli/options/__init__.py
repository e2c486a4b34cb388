"""The options of every command. These modules load quickly: help and mistakes need nothing else."""
