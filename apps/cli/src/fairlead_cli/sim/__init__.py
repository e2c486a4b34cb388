"""A simulated model provider over real HTTP: scripted, deterministic, with every fault."""
