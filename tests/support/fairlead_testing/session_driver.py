"""Drives sessions of a running stack: prompt, write events, wait, and count side effects."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import orjson

from fairlead_schema import subjects
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import (
    AttemptDispatched,
    ExecutionClaimed,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft, Recorded
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import load
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_session.verify.verify import verify
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

SIM = ModelRef(provider_id="sim", id="fast")


CONFIG = """
[runner]
tools_wait_s = {tools_wait_s}
{runner}

[projector]
sweep_age_s = {sweep_age_s}

[tools]
probes = true
probe_file = "{probe}"
"""


@asynccontextmanager
async def probe_stack(
    *,
    sweep_age_s: float = 3.0,
    tools_wait_s: float = 2.0,
    runner: str = "",
    more: str = "",
    nats_nodes: int = 1,
) -> AsyncIterator[Stack]:
    """Two runners, two tool workers, and probes that count their runs; `more` configuration first.

    Its folder is not pytest's: Postgres runs as another user, and pytest closes its own to others.
    """
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(
            place, more, sweep_age_s=sweep_age_s, tools_wait_s=tools_wait_s, runner=runner
        )
        scale = {"runner": 2, "tools": 2}
        state = place / "state"
        async with stack(state, scale=scale, config=config, sim=True, nats_nodes=nats_nodes) as up:
            yield up


def write_config(place: Path, more: str, **values: float | str) -> Path:
    """The configuration of a stack with probes, and the file in which the probes note their runs."""
    place.chmod(0o755)
    config, probe = place / "fairlead.toml", place / "probe.log"
    probe.touch(mode=0o666)
    config.write_text(more + CONFIG.format(probe=probe, **values))
    return config


async def say(up: Stack, session: str, text: str) -> str:
    """Admit a prompt; the answer is its id."""
    answer = await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": text}})
    id_: str = answer["data"]["id"]
    return id_


async def force(up: Stack, session: str, *events: SessionEvent) -> None:
    """Write the events that a dead process would have written."""
    at = Address(DEFAULT_TENANT, session)
    drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)
    head = await up.eventlog.log.head(at)
    await up.eventlog.log.append(at, ids.commit_id(), drafts, after=head)


async def wait_until_settled(up: Stack, session: str) -> list[Recorded]:
    """Wait until nothing is left to do; the whole log then, verified."""
    log = await up.events(session)
    async with asyncio.timeout(TIMEOUT_S):
        while find_unfinished_work(log):
            await asyncio.sleep(0.05)
            log = await up.events(session)
    assert verify(log) == []
    return log


def events_of(log: list[Recorded], type_: str) -> list[Any]:
    """The events of a type."""
    return [item.event for item in log if item.event.type == type_]


def probe_prompt(key: str, delay_ms: int = 0, *, tool: str = "probe_once") -> str:
    """A prompt whose answer calls a probe first."""
    arguments = json.dumps({"key": key, "delay_ms": delay_ms})
    return f"[[sim: tool={tool} args='{arguments}' ; answer=done]] go"


def probe_lines(up: Stack) -> list[list[str]]:
    """What the probes noted: tool, key, worker, pid, and whether it began or ended."""
    probe_file = load(up.up.config, {}).tools.probe_file
    if probe_file is None or not Path(probe_file).exists():
        return []
    return [line.split() for line in Path(probe_file).read_text().splitlines()]


def count_runs(up: Stack, key: str) -> int:
    """How often a probe began to run with a key."""
    return sum(words[1] == key and words[-1] == "begun" for words in probe_lines(up))


async def wait_for_probe(up: Stack, key: str, word: str) -> None:
    """Wait until a probe with this key has noted that it has `begun` or `ended`."""
    async with asyncio.timeout(TIMEOUT_S):
        while not any(line[1] == key and line[-1] == word for line in probe_lines(up)):
            await asyncio.sleep(0.02)


async def provider_calls(up: Stack) -> dict[str, int]:
    """How often the simulated provider was called, by session."""
    base = load(up.up.config, {}).provider["sim"].base_url
    async with httpx.AsyncClient(trust_env=False) as client:
        counted: dict[str, int] = (await client.get(f"{base}/sim/calls")).json()["sessions"]
    return counted


async def tool_revision(up: Stack, name: str) -> str:
    """The revision under which a tool is offered now."""
    body = orjson.dumps({"location": {"directory": "/"}})
    answer = await up.eventlog.requests.request(subjects.tool_catalog("default"), body, timeout_s=5)
    tools = orjson.loads(answer)["data"]["tools"]
    revision: str = next(tool["revision"] for tool in tools if tool["name"] == name)
    return revision


def new_admission(text: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=ids.message_id(), prompt=Prompt(text=text), delivery="steer")


def boundary_events(prompt: PromptAdmitted, assistant: str) -> tuple[SessionEvent, ...]:
    """The events of a boundary that a dead runner had crossed."""
    return (
        ExecutionClaimed(generation=1, runner=ids.runner_id()),
        PromptPromoted(message_id=prompt.message_id, prompt=prompt.prompt, created=ids.now_ms()),
        AttemptDispatched(
            attempt_id=ids.attempt_id(),
            assistant_message_id=assistant,
            agent="build",
            model=SIM,
            step=1,
        ),
    )
