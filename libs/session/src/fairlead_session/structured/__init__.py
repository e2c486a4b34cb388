"""Structured output: the schema of an answer, its limits, and the judgement of an answer."""
