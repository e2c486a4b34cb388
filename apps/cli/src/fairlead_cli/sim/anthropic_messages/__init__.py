"""Anthropic Messages as a server speaks it."""

from fairlead_cli.sim.anthropic_messages.answer import ADVISES, PREFIX, error, reel, whole
from fairlead_cli.sim.anthropic_messages.checks import complaint
from fairlead_cli.sim.anthropic_messages.request import ask

__all__ = ["ADVISES", "PREFIX", "ask", "complaint", "error", "reel", "whole"]
