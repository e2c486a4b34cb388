"""Execution: ownership, commands, recovery, retries, budgets, rest."""
