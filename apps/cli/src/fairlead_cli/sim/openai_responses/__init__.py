"""The Responses API as a server speaks it."""

from fairlead_cli.sim.openai_responses.answer import PREFIX, error, reel, whole
from fairlead_cli.sim.openai_responses.asking import ask, complaint

__all__ = ["PREFIX", "ask", "complaint", "error", "reel", "whole"]
