"""A model with a small window that knows only what it is told: `recall-2400`, `recall-2400-delay-50`.

Beyond that many tokens it refuses as real ones do. Asked for a summary it keeps every `Fact: X is Y.` it
reads, each piece after the delay; asked `What is X?` it answers from the facts in its request, or that it
does not know. It obeys no directives: a summary quotes whatever was said.
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
_SUMMARY: Final = "<conversation>"
_CHARACTERS_PER_TOKEN: Final = 4


def recall(ask: Ask) -> Script | None:
    """What such a model does; None for any other."""
    named = _NAME.fullmatch(ask.model.rpartition("/")[2])
    if named is None:
        return None
    if ask.prompt_length > int(named[1]) * _CHARACTERS_PER_TOKEN:
        return Script(refusal=TOO_LONG)
    facts = dict(_FACT.findall(ask.heard))
    if ask.said.startswith(_SUMMARY):
        return Script(answer=_summary(facts), chunk_delay_ms=float(named[2] or 0))
    asked = _QUESTION.findall(ask.said)
    if not asked:
        return Script(answer="Noted.")
    known = facts.get(asked[-1])
    return Script(answer=f"{asked[-1]} is {known}" if known else "I do not know.")


def _summary(facts: dict[str, str]) -> str:
    kept = "\n".join(f"- Fact: {name} is {value}." for name, value in facts.items()) or "- (none)"
    return (
        f"## Objective\n- sail\n\n## Important Details\n{kept}\n\n"
        "## Work State\n### Completed\n- (none)\n### Active\n- (none)\n### Blocked\n- (none)\n\n"
        "## Next Move\n1. answer\n\n## Relevant Files\n- (none)"
    )
