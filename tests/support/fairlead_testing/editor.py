"""An editor on the client side of the Agent Client Protocol's package, with a real `fairlead acp`."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from acp import Client, spawn_agent_process
from acp.client.connection import ClientSideConnection
from acp.helpers import text_block
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from fairlead_testing.stack import Stack

HANG_S = 60.0


@dataclass
class Editor:
    """Keeps what it is told, and answers permissions with `choose`. None means: the turn was cancelled."""

    choose: Callable[[list[PermissionOption]], str | None] = lambda _options: "once"
    updates: list[Any] = field(default_factory=list)
    asked: list[ToolCallUpdate] = field(default_factory=list)
    options: list[list[str]] = field(default_factory=list)
    fill: dict[str, Any] = field(default_factory=dict)
    forms: list[Any] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    agent: ClientSideConnection = field(init=False)
    process: asyncio.subprocess.Process = field(init=False)

    async def session_update(self, session_id: str, update: object, **_more: object) -> None:
        assert session_id.startswith("ses_")
        self.updates.append(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_more: object,
    ) -> RequestPermissionResponse:
        assert session_id.startswith("ses_")
        self.asked.append(tool_call)
        self.options.append([option.option_id for option in options])
        await self.may_answer.wait()
        chosen = self.choose(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=chosen)
        return RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(
        self, message: str, mode: object, **_more: object
    ) -> AcceptElicitationResponse:
        assert message
        self.forms.append(mode)
        return AcceptElicitationResponse(action="accept", content=self.fill)

    def kinds(self) -> list[str]:
        return [update.session_update for update in self.updates]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of a kind, as the editor shows it."""
        chunks = [update for update in self.updates if update.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks)

    def answer(self) -> str:
        """The text of the last message of the agent."""
        chunks = [u for u in self.updates if u.session_update == "agent_message_chunk"]
        last = chunks[-1].message_id
        return "".join(chunk.content.text for chunk in chunks if chunk.message_id == last)

    async def new_session(self, cwd: str = "/tmp") -> str:  # noqa: S108 - the sandbox of a test
        return (await self.agent.new_session(cwd=cwd, mcp_servers=[])).session_id

    async def prompt(self, session_id: str, text: str) -> PromptResponse:
        async with asyncio.timeout(HANG_S):
            return await self.agent.prompt(session_id=session_id, prompt=[text_block(text)])

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not condition():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def editor(
    up: Stack,
    *,
    token: str | None = None,
    arguments: Sequence[str] = ("acp",),
    has_forms: bool = False,
) -> AsyncIterator[Editor]:
    """An editor that has started `fairlead acp` and has shaken hands."""
    this = Editor()
    this.may_answer.set()
    environment = {
        **os.environ,
        "FAIRLEAD_HTTP": up.up.http,
        "FAIRLEAD_TOKEN": token or up.up.token or "",
    }
    async with spawn_agent_process(
        cast("Client", this),
        sys.executable,
        *("-m", "fairlead_cli", *arguments),
        env=environment,
        use_unstable_protocol=True,
    ) as (agent, process):
        this.agent, this.process = agent, process
        forms = ElicitationCapabilities(form=ElicitationFormCapabilities())
        capabilities = ClientCapabilities(elicitation=forms if has_forms else None)
        await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield this
