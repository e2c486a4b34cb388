"""The Responses API as a server speaks it."""

from fairlead_cli.sim.openai_responses.answer import ADVISES, PREFIX, error, reel, whole
from fairlead_cli.sim.openai_responses.request import ask, complaint

__all__ = ["ADVISES", "PREFIX", "ask", "complaint", "error", "reel", "whole"]
