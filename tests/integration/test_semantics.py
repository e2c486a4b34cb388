"""Session semantics through real processes: tools, interrupts, fencing, retries, limits, budgets."""

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_cli.embedded.ports import free_port
from fairlead_ingest.settings import WakeTimings
from fairlead_schema.record import Recorded
from fairlead_testing.session_driver import wait_until_settled
from fairlead_testing.stack import Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
default_agent = "build"
default_model = "sim/fast"

[provider.sim]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}"

[provider.sim.model.fast]
cost = {{ input = 3.0, output = 15.0 }}

[provider.impatient]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}"
idle_timeout_s = 1.0

[provider.impatient.model.fast]

[agent.build]

[agent.brief]
steps = 2

[agent.careful]
recovery = "hold"

[tenant.poor]
tokens = 1

[runner]
tools_wait_s = 1.0
park_after_s = 0.5
retry_base_s = 0.05
repeats_max = 3

[tools]
probes = true
probe_file = "{probe}"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Two runners, two tool workers, probes that count."""
    place: Path = tmp_path_factory.mktemp("semantics")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG.format(probe=place / "probe.log", port=free_port()))
    async with stack(
        place / "state", scale={"runner": 2, "tools": 2}, config=config, sim=True
    ) as running:
        yield running


def runs(up: Stack, key: str) -> list[str]:
    """The executions that a probe noted for a key."""
    probe_log = up.up.config.parent.parent / "probe.log"
    place = probe_log if probe_log.exists() else next(up.up.state.root.parent.glob("probe.log"))
    lines = (line.split() for line in place.read_text().splitlines())
    return [words[0] for words in lines if words[1] == key and words[-1] == "begun"]


async def say(up: Stack, session: str, text: str, **more: object) -> dict[str, Any]:
    answer = await up.ask(
        "session.prompt", {"sessionID": session, "prompt": {"text": text}, **more}
    )
    assert "data" in answer, answer
    return answer


def of(log: list[Recorded], type_: str) -> list[Any]:
    return [item.event for item in log if item.event.type == type_]


def tool(name: str, key: str, delay_ms: int = 0) -> str:
    return f'tool={name} args=\'{{"key": "{key}", "delay_ms": {delay_ms}}}\''


async def test_a_tool_is_called_run_settled_and_its_result_answered(up: Stack) -> None:
    """E-01, E-03, E-04, D-33: called before it starts, settled before the step ends, continued."""
    session = await up.session()

    await say(up, session, f"[[sim: {tool('probe_once', 'one')} ; answer=done]] go")
    log = await up.until(session, "step.ended", count=2)

    check_log(log)
    names = [name for name in event_types(log) if name.startswith(("tool.", "step.", "attempt."))]
    assert names.index("tool.called") < names.index("tool.started") < names.index("tool.succeeded")
    assert names.index("tool.succeeded") < names.index("step.ended")
    assert runs(up, "one") == ["probe_once"]
    assert of(log, "text.ended")[-1].text == "done"


async def test_parallel_calls_are_all_settled_before_the_model_continues(up: Stack) -> None:
    """E-02, E-03."""
    session = await up.session()
    calls = " ".join(tool("probe_pure", f"par{number}", 50) for number in range(4))

    await say(up, session, f"[[sim: {calls} ; answer=all]] go")
    log = await up.until(session, "step.ended", count=2)

    check_log(log)
    assert event_types(log).count("tool.succeeded") == 4
    assert all(len(runs(up, f"par{number}")) == 1 for number in range(4))


async def test_two_hundred_calls_of_ten_sessions_run_and_settle_once_each(up: Stack) -> None:
    """E-02, E-03: twenty in one turn each, at one location and under its limit."""
    sessions = [await up.session() for _ in range(10)]
    for session in sessions:
        calls = " ".join(tool("probe_once", f"{session}-{number}", 20) for number in range(20))
        await say(up, session, f"[[sim: {calls} ; answer=all]] go")

    logs = [await up.until(session, "step.ended", count=2) for session in sessions]

    for session, log in zip(sessions, logs, strict=True):
        check_log(log)
        assert event_types(log).count("tool.succeeded") == 20
        assert all(len(runs(up, f"{session}-{number}")) == 1 for number in range(20))
        assert of(log, "text.ended")[-1].text == "all"


async def test_a_long_tool_parks_the_session_and_its_settlement_wakes_it(up: Stack) -> None:
    """ARCHITECTURE section 5: a runner never blocks on long tools."""
    session = await up.session()

    await say(up, session, f"[[sim: {tool('probe_once', 'long', 2500)} ; answer=late]] go")
    parked = await up.until(session, "execution.released")
    explanation = (await up.http.get(f"/api/session/{session}/explain")).json()["data"]
    log = await up.until(session, "step.ended", count=2)

    check_log(log)
    assert of(parked, "execution.released")[0].reason == "parked"
    assert explanation["state"] == "waiting"
    assert "probe_once" in explanation["reason"]
    assert runs(up, "long") == ["probe_once"]
    assert of(log, "text.ended")[-1].text == "late"


async def test_an_interrupt_stops_a_streaming_turn_and_keeps_what_was_said(up: Stack) -> None:
    """C-12, D-11, C-16."""
    session = await up.session()
    await say(up, session, "[[sim: chunks=120 delay_ms=50]] talk for six seconds")
    await up.until(session, "text.started")
    await say(up, session, "for later", delivery="queue")

    began = time.monotonic()
    answer = await up.http.post(f"/api/session/{session}/interrupt")
    log = await up.until(session, "execution.released")
    took = time.monotonic() - began
    await asyncio.sleep(WakeTimings().honour_s)
    await up.answer_another_session()
    quiet = await up.events(session)

    check_log(log)
    assert answer.status_code == 204
    assert took < 5, "the interrupt did not wait for the stream's end"
    assert of(log, "step.failed")[0].error.message == "Provider turn interrupted"
    assert of(log, "text.ended")[0].text != ""
    assert of(log, "execution.released")[0].reason == "interrupted"
    assert len(quiet) == len(log), "the queued input waits in peace"
    await up.ask("session.resume", {"sessionID": session})
    log = await up.wait_until_rested(session)
    assert [event.prompt.text for event in of(log, "prompt.promoted")][1:] == ["for later"]


async def test_an_interrupt_cancels_a_running_tool_and_says_so(up: Stack) -> None:
    """E-16, E-17."""
    session = await up.session()
    await say(up, session, f"[[sim: {tool('probe_once', 'stopped', 20_000)} ; answer=no]] go")
    await up.until(session, "tool.started")

    await up.ask("session.interrupt", {"sessionID": session})
    log = await wait_until_settled(up, session)

    check_log(log)
    (failed,) = of(log, "tool.failed")
    assert failed.error.message == "Tool execution interrupted"
    assert not of(log, "tool.succeeded")


async def test_a_paused_runner_that_was_overtaken_writes_nothing_more(up: Stack) -> None:
    """P-02: SIGSTOP, take-over, SIGCONT: the log fences, no clock does."""
    session = await up.session()
    await say(up, session, "[[sim: chunks=40 delay_ms=50]] while one of us sleeps")
    log = await up.until(session, "step.started")
    owner = of(log, "execution.claimed")[0].runner

    for index in range(2):
        up.up.kill("runner", index, signal.SIGSTOP)
    await asyncio.sleep(0.2)
    awake = await _the_other(up, owner)
    up.up.kill("runner", awake, signal.SIGCONT)
    log = await up.until(session, "execution.claimed", count=2)
    up.up.kill("runner", 1 - awake, signal.SIGCONT)
    log = await up.until(session, "step.ended")
    await up.up.wait_ready()

    check_log(log)
    claims = of(log, "execution.claimed")
    assert claims[1].runner != owner
    after = [item for item in log if item.seq > _seq(log, "execution.claimed", 1)]
    assert "execution.recovered" in event_types(after)
    assert event_types(log).count("step.ended") == 1


async def test_a_killed_runners_session_is_taken_over_by_the_other(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "[[sim: chunks=60 delay_ms=50]] take over")
    log = await up.until(session, "step.started")
    victim = 1 - await _the_other(up, of(log, "execution.claimed")[0].runner)

    up.up.kill("runner", victim, signal.SIGKILL)
    began = time.monotonic()
    log = await up.until(session, "execution.claimed", count=2)
    took = time.monotonic() - began
    await up.until(session, "step.ended")
    await up.up.wait_ready()

    assert took < 10, "a generous guard; the bench has the figure"
    check_log(await up.events(session))


async def test_a_rolling_restart_of_all_runners_costs_no_turn(up: Stack) -> None:
    sessions = [await up.session() for _ in range(6)]
    for session in sessions:
        await say(up, session, "[[sim: chunks=20 delay_ms=50]] keep going")
    await up.until(sessions[0], "step.started")

    for index in range(2):
        await up.restart("runner", index, signal.SIGTERM)

    for session in sessions:
        log = await up.until(session, "step.ended")
        check_log(log)
        assert event_types(log).count("step.failed") == 0
        assert event_types(log).count("prompt.promoted") == 1


async def test_a_rate_limit_is_retried_and_told(up: Stack) -> None:
    """D-43, D-44: each retry is a public event, and then the turn is answered."""
    session = await up.session()

    await say(up, session, "[[sim: status=429 times=2 answer=finally]] please")
    log = await up.until(session, "step.ended")

    check_log(log)
    assert [event.attempt for event in of(log, "retried")] == [1, 2]
    assert of(log, "retried")[0].error.status_code == 429
    assert of(log, "attempt.dispatched")[-1].step == 1


async def test_a_long_back_off_parks_the_session_on_a_timer(up: Stack) -> None:
    session = await up.session()

    await say(up, session, "[[sim: status=429 retry_after=2 times=1 answer=rested]] please")
    log = await up.until(session, "execution.released")
    rest = of(log, "execution.released")[0]
    log = await up.until(session, "step.ended")

    check_log(log)
    assert rest.reason == "retry-later"
    assert rest.wake_at is not None
    claims = [item.time for item in log if item.event.type == "execution.claimed"]
    assert claims[1] >= rest.wake_at, "never early"


async def test_a_stream_that_falls_silent_is_given_up_and_what_it_said_is_kept(up: Stack) -> None:
    """D-42 decided: the idle timeout ends it; the drain fails and the inbox waits, B-24."""
    session = await up.session(model={"providerID": "impatient", "id": "fast"})
    await say(up, session, "[[sim: stall=2 chunks=8 answer='one two three four']] go")
    await up.until(session, "text.started")
    log = await up.until(session, "execution.released")

    check_log(log)
    assert of(log, "text.ended")[0].text != ""
    assert of(log, "step.failed")[0].raised
    rest = of(log, "execution.released")[-1]
    assert (rest.reason, bool(rest.detail)) == ("failed", True)


async def test_a_move_stops_what_runs_at_the_old_place_and_goes_on_at_the_new(up: Stack) -> None:
    """C-22 decided, N-22: its call is interrupted there; a new epoch begins here."""
    session = await up.session(location={"directory": "/usr"})
    await say(up, session, f"[[sim: {tool('probe_once', 'moved', 20_000)} ; answer=no]] go")
    await up.until(session, "tool.started")

    there = {"sessionID": session, "location": {"directory": "/etc"}}
    answer = await up.ask("session.move", there)
    await up.until(session, "tool.failed")
    await up.until(session, "execution.released")
    await say(up, session, "[[sim: answer=here]] and now")
    log = await up.until(session, "context.initialised", count=2)
    await up.wait_until_rested(session)
    log = await up.events(session)

    check_log(log)
    assert "data" in answer, answer
    names = event_types(log)
    assert names.index("interrupt.requested") < names.index("moved") < names.index("tool.failed")
    assert of(log, "tool.failed")[0].error.message == "Tool execution interrupted"
    assert len(runs(up, "moved")) == 1
    assert of(log, "text.ended")[-1].text == "here"
    shown = (await up.http.get(f"/api/session/{session}")).json()["data"]
    assert shown["location"]["directory"] == "/etc"


async def test_a_session_deleted_in_mid_turn_is_gone_and_its_runner_writes_nothing(
    up: Stack,
) -> None:
    """H-29: the last word fences the owner; the runner goes on with others."""
    session, other = await up.session(), await up.session()
    await say(up, session, "[[sim: chunks=20 delay_ms=50]] talk for a second")
    await up.until(session, "text.started")

    answer = await up.http.delete(f"/api/session/{session}", params={"purge": "true"})
    missing = await up.http.get(f"/api/session/{session}")
    await say(up, other, "still there?")
    await up.until(other, "step.ended")
    # The provider's stream ends meanwhile. A fenced runner writes nothing that shows this end.
    await asyncio.sleep(1.0)

    log = await up.events(session)
    assert (answer.status_code, missing.status_code) == (204, 404)
    assert event_types(log)[-1] == "session.purged"
    again = await up.ask("session.resume", {"sessionID": session})
    assert again["error"]["_tag"] == "SessionNotFoundError"


async def test_a_loop_of_the_same_call_is_stopped_with_a_reason(up: Stack) -> None:
    """E-30."""
    session = await up.session()
    loop = " ; ".join(tool("probe_pure", "again") for _ in range(6))

    await say(up, session, f"[[sim: {loop} ; answer=never]] go")
    log = await up.until(session, "execution.released")

    check_log(log)
    assert of(log, "execution.released")[-1].reason == "repeated-calls"
    assert len(runs(up, "again")) == 3
    explanation = (await up.http.get(f"/api/session/{session}/explain")).json()["data"]
    assert explanation["state"] == "resting"


async def test_an_agents_last_step_is_forced_to_be_text(up: Stack) -> None:
    """E-23, E-24: no tools on the last step; a call made anyway is not executed."""
    session = await up.session(agent="brief")
    calls = f"{tool('probe_pure', 'brief1')} ; {tool('probe_pure', 'brief2')}"

    await say(up, session, f"[[sim: {calls} ; answer=never]] go")
    log = await up.until(session, "step.ended", count=2)
    await up.wait_until_rested(session)

    check_log(log)
    assert runs(up, "brief1") == ["probe_pure"]
    assert runs(up, "brief2") == []


async def test_a_budget_stops_a_session_and_raising_it_goes_on(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "spend a little")
    await up.until(session, "step.ended")
    await up.ask("session.budget", {"sessionID": session, "tokens": 1})
    await say(up, session, "spend more")
    log = await up.until(session, "execution.released", count=2)
    reason = of(log, "execution.released")[-1].reason
    await up.ask("session.budget", {"sessionID": session, "tokens": 1_000_000})
    log = await up.until(session, "step.ended", count=2)

    check_log(log)
    assert reason == "over-budget"


async def test_a_tenant_over_its_limit_rests_and_goes_on_when_it_is_raised(up: Stack) -> None:
    """Section 9 of the issue: no event raises it, only new processes; the sweep finds who rests."""
    created = await up.ask("session.create", {}, tenant="poor")
    session, reasons = created["data"]["id"], list[str]()

    async def log() -> list[Recorded]:
        return await up.events(session, tenant="poor")

    async with asyncio.timeout(60):
        while "over-budget" not in reasons:
            body = {"sessionID": session, "prompt": {"text": "spend"}}
            await up.ask("session.prompt", body, tenant="poor")
            rests = len(reasons) + 1
            released = await up.until(session, "execution.released", count=rests, tenant="poor")
            reasons = [event.reason for event in of(released, "execution.released")]
    answered = len(of(await log(), "step.ended"))
    up.up.config.write_text(re.sub(r"tokens *= *1\b", "tokens = 1000000", up.up.config.read_text()))
    for name, index in (("runner", 0), ("runner", 1), ("projector", 0)):
        up.up.kill(name, index, signal.SIGTERM)
    await up.up.wait_ready()

    async with asyncio.timeout(60):
        while len(of(await log(), "step.ended")) == answered:
            await asyncio.sleep(0.2)
    check_log(await log())


async def test_a_held_recovery_waits_for_a_resume(up: Stack) -> None:
    """P-01: the policy of the agent decides what follows a crash."""
    session = await up.session(agent="careful")
    await say(up, session, "[[sim: chunks=60 delay_ms=50]] carefully")
    await up.until(session, "step.started")
    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    log = await up.until(session, "execution.released")
    await up.up.wait_ready()
    reason = of(log, "execution.released")[-1].reason
    answer = await up.http.post(f"/api/session/{session}/resume")
    log = await up.until(session, "step.ended")

    check_log(log)
    assert reason == "held"
    assert answer.status_code == 202
    assert of(log, "execution.recovered")[0].action == "held"


async def _the_other(up: Stack, owner: str) -> int:
    """The index of the runner that is not the owner, found by pausing each and pinging the owner."""
    for index in range(2):
        up.up.kill("runner", index, signal.SIGCONT)
    other = 0
    for index in range(2):
        up.up.kill("runner", index, signal.SIGSTOP)
        alive = await up.eventlog.liveness.ping(owner, timeout_s=0.3)
        up.up.kill("runner", index, signal.SIGCONT)
        if alive == "silent":
            other = 1 - index
    for index in range(2):
        if index != other:
            up.up.kill("runner", index, signal.SIGSTOP)
    return other


def _seq(log: list[Recorded], type_: str, index: int) -> int:
    return [item.seq for item in log if item.event.type == type_][index]
