"""A stack for the tests of other protocols: `bash` asks, everything else is allowed."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairlead_schema.events import ToolCalled
from fairlead_service.identity.key_file import add_key
from fairlead_service.identity.keys import mint_key
from fairlead_session.calls.child_ids import child_of
from fairlead_testing.stack import Stack, stack

GUIDE = Path(__file__).parents[3] / "docs/guide/protocols.md"
CONFIG = """
permissions = [
  { action = "*", resource = "*", effect = "allow" },
  { action = "bash", resource = "*", effect = "ask" },
]

[command.review]
template = '[[sim: answer="reviewed"]] Review $1'
description = "Reviews a file"
"""


@asynccontextmanager
async def protocol_stack(place: Path) -> AsyncIterator[Stack]:
    """It runs with the simulated provider. Its tool workers may use every place of the test."""
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o777)
    (place / "fairlead.toml").write_text(CONFIG)
    async with stack(place / "state", config=place / "fairlead.toml", sim=True) as running:
        yield running


def guide_block(language: str) -> str:
    """The lines to copy of the guide in a language."""
    (block,) = re.findall(rf"(?ms)^```{language}\n(.*?)^```", GUIDE.read_text())
    return str(block)


def shell_prompt(command: str, answer: str = "done it") -> str:
    """A prompt whose turn runs a command, which asks first, and then answers."""
    return f"""[[sim: tool=bash args='{{"command":"{command}"}}'; answer="{answer}"]] go"""


async def add_stranger(up: Stack) -> str:
    """The key of an administrator of another tenant, after the gateway has read it."""
    key, entry = mint_key(("admin",), tenant="acme")
    add_key(up.up.state.keys, entry)
    headers = {"authorization": f"Bearer {key}"}
    async with asyncio.timeout(30):
        while (await up.http.get("/api/session", headers=headers)).is_error:
            await asyncio.sleep(0.1)
    return key


def task_prompt() -> str:
    """A prompt that hands long work to a sub-agent."""
    work = {"agent": "general", "description": "work", "prompt": "tell a long story " * 40}
    return f"[[sim: tool=task args='{json.dumps(work)}' ; answer=done]] go"


async def slow_session(up: Stack) -> str:
    """A session whose model takes long to answer, as its sub-agents do."""
    return await up.session(model={"providerID": "sim", "id": "slow"})


async def ask_from_below(up: Stack, session: str, command: str = "true") -> str:
    """Let the sub-agent of a session ask for a permission; the id of the sub-agent's session."""
    log = await up.until(session, "tool.called")
    called = next(one.event for one in log if isinstance(one.event, ToolCalled))
    child = child_of(session, called.assistant_message_id, called.call_id)
    await up.until(child, "step.started")
    prompt = {"sessionID": child, "prompt": {"text": shell_prompt(command, "below")}}
    await up.ask("session.prompt", prompt)
    await up.until(child, "permission.asked")
    return child
