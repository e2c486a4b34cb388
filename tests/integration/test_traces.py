"""Traces of a whole stack, as a collector receives them, and the log lines beside them."""

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest

from fairlead_schema.events import AttemptDispatched, PermissionAsked
from fairlead_testing.session_driver import probe_prompt
from fairlead_testing.stack import Stack, stack
from fairlead_testing.trace_collector import CollectedSpan, Mood, TraceCollector, run_collector

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
OUTPUT = "gen_ai.output.messages"
PROMPT = '[[sim: tool=glob args=\'{"pattern": "*.secretive"}\' ; answer="a quiet reply"]] look'


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    with run_collector() as running:
        yield running


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that Postgres can enter as another user."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def configure(place: Path, collector: TraceCollector, more: str = "") -> Path:
    config = place / "fairlead.toml"
    config.write_text(f'[traces]\nendpoint = "{collector.endpoint}"\ndelay_s = 0.1\n{more}\n')
    return config


async def say(up: Stack, session: str, text: str, **headers: str) -> str:
    """Send a prompt over HTTP; the answer is the id of the request."""
    path, body = f"/api/session/{session}/prompt", {"prompt": {"text": text}}
    answer = await up.http.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["x-request-id"])


def lines(up: Stack, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in up.up.log_path(name).read_text().splitlines()]


def is_connected(spans: list[CollectedSpan]) -> bool:
    """Whether every span hangs below the caller's, over spans that came."""
    known = {span.span_id for span in spans} | {CALLER.split("-")[2]}
    return {span.parent_id for span in spans} <= known


async def test_a_turn_with_a_call_is_one_connected_trace(
    place: Path, collector: TraceCollector
) -> None:
    config = configure(place, collector)
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        request_id = await say(up, session, PROMPT, traceparent=CALLER)
        await up.wait_until_rested(session)
        await collector.wait_for("POST /api", "session.prompt", "drain", "execute_tool")
        await collector.wait_until(lambda: len(collector.named("turn")) == 2)
        await collector.wait_until(lambda: is_connected(collector.trace(TRACE_ID)))
        log = lines(up, "gateway")

    spans = collector.trace(TRACE_ID)
    names = [span.name for span in spans]
    assert {span.service for span in spans} == {
        f"fairlead-{name}" for name in ("gateway", "ingest", "runner", "tools")
    }
    assert names.count("turn") == names.count("prepare turn") == 2
    chats = [span for span in spans if span.name.startswith("chat ")]
    assert len(chats) == 2
    for chat in chats:
        assert chat.attributes["gen_ai.operation.name"] == "chat"
        assert chat.attributes["gen_ai.provider.name"] == "sim"
        assert chat.attributes["gen_ai.conversation.id"] == session
        assert chat.attributes["gen_ai.usage.output_tokens"] >= 0
        assert chat.attributes["gen_ai.response.finish_reasons"]
        assert chat.attributes["gen_ai.response.time_to_first_chunk"] >= 0
        assert chat.attributes["fairlead.attempt.id"]
    (call,) = [span for span in spans if span.name.startswith("execute_tool")]
    assert call.name == "execute_tool glob"
    assert call.attributes["gen_ai.tool.name"] == "glob"
    # No prompt, no answer and no argument leaves the stack unless somebody asks for it.
    assert not [
        value
        for span in collector.spans
        for value in (span.name, *span.attributes.values())
        if "secretive" in str(value) or "quiet" in str(value)
    ]
    (line,) = [line for line in log if line.get("request_id") == request_id]
    assert (line["message"], line["session_id"], line["trace_id"]) == ("request", session, TRACE_ID)
    assert {"tenant", "principal", "span_id"} <= line.keys()


@pytest.mark.slow
async def test_a_take_over_after_a_kill_links_to_the_trace_of_the_turn(
    place: Path, collector: TraceCollector
) -> None:
    config = configure(place, collector)
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        text = "[[sim: chunks=100 delay_ms=100]] take your time"
        await say(up, session, text, traceparent=CALLER)
        await up.until(session, "text.started")
        await up.restart("runner", 0, signal.SIGKILL)
        await up.until(session, "execution.recovered")
        await up.http.post(f"/api/session/{session}/interrupt", json={})
        await up.wait_until_rested(session)
        log = await up.events(session)
        await collector.wait_for("drain")

    (attempt, *_) = [item.event for item in log if isinstance(item.event, AttemptDispatched)]
    assert attempt.trace is not None
    trace_id, span_id = attempt.trace.split("-")[1:3]
    assert trace_id == TRACE_ID
    # The killed runner never sent its drain; the span that woke it is there.
    assert span_id in {span.span_id for span in collector.trace(TRACE_ID)}
    assert [span for span in collector.named("drain") if TRACE_ID in span.links]


@pytest.mark.slow
async def test_a_parked_session_that_goes_on_links_to_the_trace_of_its_turn(
    place: Path, collector: TraceCollector
) -> None:
    probe = place / "probe.log"
    probe.touch(mode=0o666)
    config = configure(place, collector, f'[tools]\nprobes = true\nprobe_file = "{probe}"\n')
    rule = 'permissions = [ { action = "probe_once", resource = "*", effect = "ask" } ]\n'
    config.write_text(rule + config.read_text())
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        await say(up, session, probe_prompt("parked"), traceparent=CALLER)
        log = await up.until(session, "permission.asked")
        (ask,) = [item.event for item in log if isinstance(item.event, PermissionAsked)]
        path = f"/api/session/{session}/permission/{ask.request.id}/reply"
        answer = await up.http.post(path, json={"reply": "once"})
        assert answer.status_code < 300, answer.text
        await up.until(session, "tool.succeeded")
        await up.wait_until_rested(session)
        await collector.wait_for("permission.reply", "execute_tool probe_once")

    (reply,) = collector.named("permission.reply")
    drains = [span for span in collector.trace(reply.trace_id) if span.name == "drain"]
    assert reply.trace_id != TRACE_ID
    assert [drain for drain in drains if TRACE_ID in drain.links]


@pytest.mark.slow
async def test_content_is_recorded_only_where_it_is_asked_for(
    place: Path, collector: TraceCollector
) -> None:
    config = configure(place, collector, "content = true")
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        await say(up, session, PROMPT, traceparent="not a trace")
        await up.wait_until_rested(session)
        await collector.wait_for("POST /api", "chat", "execute_tool glob")

    chats, (call,) = collector.named("chat "), collector.named("execute_tool")
    assert any("look" in chat.attributes["gen_ai.input.messages"] for chat in chats)
    assert any("a quiet reply" in chat.attributes.get(OUTPUT, "") for chat in chats)
    assert "secretive" in call.attributes["gen_ai.tool.call.arguments"]
    assert not [span for span in collector.named("POST /api") if span.parent_id]


@pytest.mark.slow
@pytest.mark.parametrize("mood", ["refuses", "stalls"])
async def test_a_collector_that_is_no_help_disturbs_nobody(
    mood: Mood, place: Path, collector: TraceCollector
) -> None:
    collector.mood = mood
    config = configure(place, collector, "queue_max = 8\nflush_s = 1.0")
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        for _ in range(3):
            await say(up, session, PROMPT)
            await up.wait_until_rested(session)
        await up.up.process("runner").stop()
        log = lines(up, "runner")

    assert collector.requests
    assert not collector.spans
    assert not [line for line in log if line["level"] == "error" or "error" in line]


@pytest.mark.slow
async def test_the_lines_of_a_take_over_name_what_they_are_about(
    place: Path, collector: TraceCollector
) -> None:
    config = configure(place, collector, "")
    async with stack(place / "state", config=config, sim=True) as up:
        session = await up.session()
        await say(up, session, "[[sim: chunks=100 delay_ms=100]] slowly", traceparent=CALLER)
        await up.until(session, "text.started")
        await up.restart("runner", 0, signal.SIGKILL)
        await up.until(session, "execution.recovered")
        log = lines(up, "runner")

    (line,) = [line for line in log if line["message"].startswith("turn of a dead runner")]
    known = {"tenant", "principal", "session_id", "attempt_id", "trace_id", "span_id"}
    assert known - {"principal"} <= line.keys()
    assert (line["session_id"], line["trace_id"]) == (session, TRACE_ID)
