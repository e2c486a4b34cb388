"""A person's own command in a worker: it runs once, under permission, and ends in its own message."""

from pathlib import Path

from pydantic import BaseModel

from fairlead_schema import subjects
from fairlead_schema.events import (
    PermissionAsked,
    SessionCreated,
    ShellEnded,
    ShellStarted,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import Effect, PermissionRule
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.tools.request import ToolRequest
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools.builtin import bash
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.private_directory import open_private_directory
from fairlead_tools.registry.registry import Registry
from services.tools.tests.conftest import AT, Harness, run_worker, wait_until

SHELL = ("msg_s", "call_s")


class Counter(BaseModel):
    """The file in which each run leaves a line."""

    path: Path

    def lines(self) -> int:
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0


async def request(harness: Harness, directory: Path, command: str) -> None:
    """A session at a directory with a command that its runner has started and requested."""
    harness.registry.register(
        bash.tool(ToolsConfig(), open_private_directory(str(directory / "private")))
    )
    # People's commands run only at this level, and their exit code needs it.
    await harness.eventlog.log._status.finalise(LEVEL_NEWEST)  # type: ignore[attr-defined]  # noqa: SLF001
    message_id, call_id = SHELL
    moved = SessionCreated(
        title="t", project_id="p", location=LocationRef(directory=str(directory))
    )
    await harness.write(
        moved,
        ShellStarted(message_id=message_id, call_id=call_id, command=command, agent="build"),
    )
    body = ToolRequest(session_id=AT.session_id, assistant_message_id=message_id, call_id=call_id)
    payload = body.model_dump_json(by_alias=True).encode()
    await harness.eventlog.work.put(subjects.tool(AT, "default"), payload)


def policy(effect: Effect) -> CallPolicy:
    rules = (PermissionRule(action="bash", resource="*", effect=effect),)
    return CallPolicy(lambda _agent: rules)


async def serve(harness: Harness, effect: Effect, name: str = "wkr_a") -> list[object]:
    async with run_worker(harness.worker(name, policy(effect))):
        await wait_until(lambda: not harness.jobs)
    return list(await harness.events())


async def test_a_command_runs_and_its_message_has_the_output(
    harness: Harness, tmp_path: Path
) -> None:
    counter = Counter(path=tmp_path / "runs")
    await request(harness, tmp_path, "echo run >> runs; echo said; exit 3")

    events = await serve(harness, "allow")

    ended = [event for event in events if isinstance(event, ShellEnded)]
    assert [event.message_id for event in ended] == ["msg_s"]
    assert "said" in ended[0].output
    assert "3" in ended[0].output
    assert ended[0].exit == 3
    assert counter.lines() == 1
    kinds = (ToolSucceeded, ToolFailed, ToolProgressed)
    assert not any(isinstance(event, kinds) for event in events)
    assert (await harness.session()).calls == ()


async def test_a_command_that_a_rule_denies_never_starts(harness: Harness, tmp_path: Path) -> None:
    await request(harness, tmp_path, "echo run >> runs")

    events = await serve(harness, "deny")

    assert not (tmp_path / "runs").exists()
    assert not any(isinstance(event, ToolStarted) for event in events)
    (ended,) = [event for event in events if isinstance(event, ShellEnded)]
    assert "denies" in ended.output or "denied" in ended.output.lower()


async def test_a_command_that_needs_permission_asks_a_person_first(
    harness: Harness, tmp_path: Path
) -> None:
    await request(harness, tmp_path, "echo run >> runs")

    events = await serve(harness, "ask")

    (asked,) = [event for event in events if isinstance(event, PermissionAsked)]
    assert asked.request.source is not None
    assert (asked.request.source.message_id, asked.request.source.call_id) == SHELL
    assert not (tmp_path / "runs").exists()
    assert len((await harness.session()).calls) == 1


async def test_a_command_whose_worker_died_is_interrupted_and_never_runs_again(
    harness: Harness, tmp_path: Path
) -> None:
    """E-20: nobody knows whether the command had its effect."""
    counter = Counter(path=tmp_path / "runs")
    await request(harness, tmp_path, "echo run >> runs")
    message_id, call_id = SHELL
    await harness.write(
        ToolStarted(
            assistant_message_id=message_id, call_id=call_id, worker="wkr_dead", generation=1
        )
    )

    events = await serve(harness, "allow", "wkr_b")

    ended = [event for event in events if isinstance(event, ShellEnded)]
    assert [event.output for event in ended] == [INTERRUPTED_TOOL]
    assert counter.lines() == 0


async def test_a_command_where_no_shell_is_offered_says_so(
    harness: Harness, tmp_path: Path
) -> None:
    await request(harness, tmp_path, "true")
    harness.registry = Registry()

    events = await serve(harness, "allow")

    (ended,) = [event for event in events if isinstance(event, ShellEnded)]
    assert "switched off" in ended.output
