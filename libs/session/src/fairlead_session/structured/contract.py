"""The contract of a structured answer: how it is asked for, and the judgement of what came back."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from fairlead_schema.provider.request import ForcedTool, ToolChoice, ToolDefinition
from fairlead_schema.provider.structured_output import StepOutput
from fairlead_session.structured.validation import find_violations

OUTPUT_TOOL: Final = "structured_output"
REPAIRS_MAX: Final = 2
CUT_OFF: Final = frozenset({"length", "content-filter"})
NO_CALL: Final = f"the answer was not given: call the tool {OUTPUT_TOOL} with it"

OutputMode: TypeAlias = Literal["native", "forced-tool", "offered-tool"]
"""How a model is asked for structured output: by its provider's own mode, or by a tool."""

_FENCE: Final = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OutputContract:
    """What the answer must fit, how it is asked for, and how often it was repaired before."""

    schema: dict[str, Any]
    mode: OutputMode = "forced-tool"
    repairs: int = 0

    @property
    def uses_tool(self) -> bool:
        return self.mode != "native"

    def choose_tool(self, *, alone: bool) -> ToolChoice:
        """The tool choice. Beside other tools the model may work first; a repair only answers."""
        if self.mode == "offered-tool":
            return "auto"
        return ForcedTool(OUTPUT_TOOL) if alone or self.repairs else "required"

    def definition(self) -> ToolDefinition:
        """The tool whose input is the answer."""
        description = (
            "Gives the final answer to the user's prompt. Its input is the answer. "
            "Call it exactly once, when all other work is done."
        )
        return ToolDefinition(OUTPUT_TOOL, description, self.schema)

    def judge(self, value: object) -> StepOutput:
        """Whether a value is the answer, or why not."""
        violations = find_violations(self.schema, value)
        if not violations and isinstance(value, dict):
            return StepOutput(status="accepted", value=value, repairs=self.repairs)
        return self.reject("; ".join(violations) or "the answer is no JSON object")

    def judge_text(self, text: str, finish: str) -> StepOutput:
        """Whether a text is the answer, or why not."""
        if finish in CUT_OFF:
            return self.reject(f"the answer ended early ({finish})")
        fenced = _FENCE.fullmatch(text)
        try:
            value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            return self.reject(f"the answer is no JSON: {error}")
        return self.judge(value)

    def reject(self, reason: str) -> StepOutput:
        """The answer does not count. After the last repair the prompt has failed."""
        status: Literal["failed", "rejected"] = (
            "failed" if self.repairs >= REPAIRS_MAX else "rejected"
        )
        return StepOutput(status=status, error=reason, repairs=self.repairs)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")
