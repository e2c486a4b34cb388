"""Models with a small context window that answer from their request alone: `recall-2400`.

Beyond that many tokens the model refuses as real ones do. It answers `What is X?` from the facts in its
request, each written `Fact: X is Y.`, and keeps the facts when it writes a summary. `recall-2400-delay-50`
delays only its summaries. Directives have no effect on these models.
"""

import re
from typing import Final

from fairlead_cli.sim.script import HttpRefusal, Script, SimRequest

TOO_LONG: Final = HttpRefusal(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9000 tokens. Please reduce the length of the messages.",
    "context_length_exceeded",
)
_NAME: Final = re.compile(r"recall-(\d+)(?:-delay-(\d+))?")
_FACT: Final = re.compile(r"Fact: ([\w ]+?) is ([\w ]+?)\.")
_QUESTION: Final = re.compile(r"What is ([\w ]+?)\?")
_USER_LINE: Final = re.compile(r"(?m)^\[User\]: (.{1,60})")
_SUMMARY: Final = "<conversation>"
_CHARACTERS_PER_TOKEN: Final = 4


def recall_script(request: SimRequest) -> Script | None:
    """The script of a recall model; None for any other model."""
    name = _NAME.fullmatch(request.model.rpartition("/")[2])
    if name is None:
        return None
    if request.prompt_length > int(name[1]) * _CHARACTERS_PER_TOKEN:
        return Script(refusal=TOO_LONG)
    if wants_summary(request):
        return Script(answer=summary_text(request), chunk_delay_ms=float(name[2] or 0))
    questions = _QUESTION.findall(request.user_text)
    if not questions:
        return Script(answer="Noted.")
    fact = dict(_FACT.findall(request.full_text)).get(questions[-1])
    return Script(answer=f"{questions[-1]} is {fact}" if fact else "I do not know.")


def wants_summary(request: SimRequest) -> bool:
    """Whether the request asks for a summary. Directives that it quotes have no effect."""
    return request.user_text.startswith(_SUMMARY)


def summary_text(request: SimRequest) -> str:
    """A summary of the quoted conversation: its first user message and every fact in it."""
    text = request.user_text
    facts = [f"- Fact: {name} is {value}." for name, value in dict(_FACT.findall(text)).items()]
    objective = [f"- {line}" for line in _USER_LINE.findall(text)[:1]]
    return (
        f"## Objective\n{''.join(objective) or '- (none)'}\n\n"
        f"## Important Details\n{chr(10).join(facts) or '- (none)'}\n\n"
        "## Work State\n### Completed\n- (none)\n### Active\n- (none)\n### Blocked\n- (none)\n\n"
        "## Next Move\n1. answer\n\n## Relevant Files\n- (none)"
    )
