"""Anthropic Messages as a server speaks it."""

from fairlead_cli.sim.anthropic_messages.answer import ADVISES, PREFIX, error, reel, whole
from fairlead_cli.sim.anthropic_messages.asking import ask
from fairlead_cli.sim.anthropic_messages.checking import complaint

__all__ = ["ADVISES", "PREFIX", "ask", "complaint", "error", "reel", "whole"]
