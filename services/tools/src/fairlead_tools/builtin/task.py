"""`task`: hands a piece of work to a sub-agent in its own session and returns its last answer.

No worker and no request waits: the rest of the sub-agent brings a new request.
"""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from fairlead_session.calls.child_ids import TASK
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.people.permission import Need
from fairlead_tools.calls.subagents import Subagents, SubagentTask
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool


class TaskInput(BaseModel):
    """The work and the sub-agent."""

    model_config = ConfigDict(extra="forbid")

    agent: str = Field(min_length=1, max_length=256, description="the sub-agent that does the work")
    description: str = Field(min_length=1, max_length=200, description="the work in a few words")
    prompt: str = Field(
        min_length=1,
        max_length=100_000,
        description="everything the sub-agent must know: it sees nothing of this conversation",
    )


class TaskOutput(BaseModel):
    """The session of the sub-agent."""

    sessionID: str  # noqa: N815 - as it is on the wire


def tool(children: Subagents, agents: Mapping[str, str]) -> Tool:
    """The tool for these sub-agents, by name and description."""

    async def needs(request: TaskInput, _context: CallContext) -> tuple[Need, ...]:
        if request.agent not in agents:
            names = ", ".join(sorted(agents)) or "none"
            raise CallFailed(f"Unknown sub-agent: {request.agent}. There are: {names}")
        return (Need(TASK, (request.agent,), save=(request.agent,)),)

    async def attend(request: TaskInput, context: CallContext) -> Outcome | None:
        return await children.attend(context, SubagentTask(request.agent, request.prompt))

    return Tool(
        name=TASK,
        description=_description(agents),
        input=TaskInput,
        output=TaskOutput,
        needs=needs,
        attend=attend,
        retry="idempotent",
    )


def _description(agents: Mapping[str, str]) -> str:
    lines = "\n".join(f"- {name}: {agents[name]}" for name in sorted(agents))
    return (
        "Hands a self-contained piece of work to a sub-agent, which works in a session of its own "
        f"and answers once with its result. Sub-agents:\n{lines}"
    )
