"""A person's own command in a drain: started at a safe boundary, sent to a worker, concluded by a rest."""

from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    ShellEnded,
    ShellRequested,
    ShellStarted,
)
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.tools.request import ToolRequest
from services.runner.tests.conftest import World, admitted, run_consumer, text_reply, wait_until
from services.runner.tests.tool_calls import wait_for_event

REQUESTED = ShellRequested(message_id="msg_s", call_id="call_s", command="make", agent="build")
ENDED = ShellEnded(message_id="msg_s", call_id="call_s", output="built")


async def write(world: World, *events: SessionEvent) -> None:
    await world.log._status.finalise(LEVEL_NEWEST)  # noqa: SLF001 - the operator's part
    await world.write(*events)


def requests(world: World) -> list[ToolRequest]:
    work = world.eventlog.work
    assert isinstance(work, MemoryWorkQueues)
    return [ToolRequest.model_validate_json(job.payload) for job in work.queue("TOOLS").messages]


async def test_a_command_of_an_idle_session_runs_without_a_model(world: World) -> None:
    """I-07: the start is durable before a worker hears of it, and the end brings the session to rest."""
    await write(world, REQUESTED)
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        started = await wait_for_event(world, "shell.started")
        assert isinstance(started, ShellStarted)
        await wait_until(lambda: bool(requests(world)))
        await write(world, ENDED)
        await wait_until(lambda: not world.wakes)

    (request,) = requests(world)
    assert (request.assistant_message_id, request.call_id) == ("msg_s", "call_s")
    assert request.snapshot is None
    assert world.provider.requests == []
    session = await world.session()
    assert session.execution.rested == "idle"
    assert not session.execution.shell_requested


async def test_the_command_of_a_prompt_runs_first_and_the_model_sees_both(world: World) -> None:
    """O-03, P-22: the output stands before the prompt that asked for it."""
    world.provider.replies.append(text_reply("seen"))
    of_prompt = REQUESTED.model_copy(update={"prompt_id": "msg_1"})
    await write(world, of_prompt, admitted("msg_1", "what failed?"))
    await world.wake()

    async with run_consumer(WakeConsumer(world.context())):
        await wait_for_event(world, "shell.started")
        await write(world, ENDED)
        await wait_until(lambda: not world.wakes)

    types = await world.types()
    assert types.index("shell.ended") < types.index("prompt.promoted")
    said = "\n".join(str(message[1]) for message in world.provider.messages())
    assert said.index("built") < said.index("what failed?")


async def test_an_interrupt_ends_a_command_that_nobody_has_begun(world: World) -> None:
    await write(world, REQUESTED)
    await world.write(InterruptRequested())
    await world.drain()

    assert (await world.types())[-3:] == ["shell.started", "shell.ended", "execution.released"]
    assert requests(world) == []
    assert (await world.session()).calls == ()
