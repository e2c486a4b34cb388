"""Gemini's generateContent as a server speaks it.

Its model and its verb are in the path: the application adds them to the body as `model`, `stream`.
"""

from fairlead_cli.sim.gemini.answer import ADVISES, PREFIX, error, reel, whole
from fairlead_cli.sim.gemini.request import ask, complaint

__all__ = ["ADVISES", "PREFIX", "ask", "complaint", "error", "reel", "whole"]
