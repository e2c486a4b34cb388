"""A model with a small window that knows only what it is told: `recall-2400`, `recall-2400-delay-50`.

Beyond that many tokens it refuses as real ones do. Asked `What is X?` it answers from the facts in its
request, each `Fact: X is Y.`, or that it does not know. Like every model here it keeps the facts when it is
asked for a summary; its delay is for that alone. It obeys no directives.
"""

import re
from typing import Final

from fairlead_cli.sim.script import Ask, Refusal, Script

TOO_LONG: Final = Refusal(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9000 tokens. Please reduce the length of the messages.",
    "context_length_exceeded",
)
_NAME: Final = re.compile(r"recall-(\d+)(?:-delay-(\d+))?")
_FACT: Final = re.compile(r"Fact: ([\w ]+?) is ([\w ]+?)\.")
_QUESTION: Final = re.compile(r"What is ([\w ]+?)\?")
_SAID: Final = re.compile(r"(?m)^\[User\]: (.{1,60})")
_SUMMARY: Final = "<conversation>"
_CHARACTERS_PER_TOKEN: Final = 4


def recall(ask: Ask) -> Script | None:
    """What such a model does; None for any other."""
    named = _NAME.fullmatch(ask.model.rpartition("/")[2])
    if named is None:
        return None
    if ask.prompt_length > int(named[1]) * _CHARACTERS_PER_TOKEN:
        return Script(refusal=TOO_LONG)
    if summarises(ask):
        return Script(answer=summary(ask), chunk_delay_ms=float(named[2] or 0))
    asked = _QUESTION.findall(ask.said)
    if not asked:
        return Script(answer="Noted.")
    known = dict(_FACT.findall(ask.heard)).get(asked[-1])
    return Script(answer=f"{asked[-1]} is {known}" if known else "I do not know.")


def summarises(ask: Ask) -> bool:
    """Whether a summary is asked for. What it quotes is no directive to any model."""
    return ask.said.startswith(_SUMMARY)


def summary(ask: Ask) -> str:
    """A summary of what the request quotes: where it began, and every fact in it."""
    facts = [f"- Fact: {name} is {value}." for name, value in dict(_FACT.findall(ask.said)).items()]
    begun = [f"- {said}" for said in _SAID.findall(ask.said)[:1]]
    return (
        f"## Objective\n{''.join(begun) or '- (none)'}\n\n"
        f"## Important Details\n{chr(10).join(facts) or '- (none)'}\n\n"
        "## Work State\n### Completed\n- (none)\n### Active\n- (none)\n### Blocked\n- (none)\n\n"
        "## Next Move\n1. answer\n\n## Relevant Files\n- (none)"
    )
