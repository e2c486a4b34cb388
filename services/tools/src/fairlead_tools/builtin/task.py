"""`task`: hand a piece of work to a sub-agent in a session of its own, and get its last words.

Nothing waits for it: the request goes back to its queue, and the sub-agent's rest brings it back.
"""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from fairlead_session.calls.child_ids import TASK
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.people.permission import Need
from fairlead_tools.calls.subagents import Subagents, SubagentTask
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool


class TaskInput(BaseModel):
    """What to do, and who does it."""

    model_config = ConfigDict(extra="forbid")

    agent: str = Field(min_length=1, max_length=256, description="the sub-agent that does the work")
    description: str = Field(min_length=1, max_length=200, description="the work in a few words")
    prompt: str = Field(
        min_length=1,
        max_length=100_000,
        description="everything the sub-agent must know: it sees nothing of this conversation",
    )


class TaskOutput(BaseModel):
    """Where the work was done."""

    sessionID: str  # noqa: N815 - as it is on the wire


def tool(children: Subagents, agents: Mapping[str, str]) -> Tool:
    """The tool for these sub-agents: their names, and what each is good at."""

    async def needs(asked: TaskInput, _context: CallContext) -> tuple[Need, ...]:
        if asked.agent not in agents:
            known = ", ".join(sorted(agents)) or "none"
            raise CallFailed(f"Unknown sub-agent: {asked.agent}. There are: {known}")
        return (Need(TASK, (asked.agent,), save=(asked.agent,)),)

    async def attend(asked: TaskInput, context: CallContext) -> Outcome | None:
        return await children.attend(context, SubagentTask(asked.agent, asked.prompt))

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
    listed = "\n".join(f"- {name}: {agents[name]}" for name in sorted(agents))
    return (
        "Hands a self-contained piece of work to a sub-agent, which works in a session of its own "
        f"and answers once with its result. Sub-agents:\n{listed}"
    )
