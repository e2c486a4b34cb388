"""Pools of tool workers, for operators: what each does now, and how its sessions leave it."""
