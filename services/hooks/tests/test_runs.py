"""Runs of schedules over an event log in memory: claims, retries, refusals and rights."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_hooks.schedules.claim import Claim, LookAgain, RunClaims
from fairlead_hooks.schedules.clock import ScheduleClock
from fairlead_hooks.schedules.rights import CurrentRights
from fairlead_hooks.schedules.run import RunSender, RunUnanswered
from fairlead_schema.errors import (
    Forbidden,
    InternalFailure,
    LimitReached,
    Refused,
)
from fairlead_schema.prompt import PromptInput
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleState, ScheduleTiming
from fairlead_service.config.auth import AuthConfig
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_service.ids import now_ms
from fairlead_service.supervise import cancel_and_wait

OPEN = CurrentRights(AuthConfig(mode="open"), 30)


def schedule(due: int, **fields: Any) -> ScheduleRecord:  # noqa: ANN401
    values = {"by": "local", "session": "same", "changed": due - 10, **fields}
    return ScheduleRecord(
        id="sch_1",
        timing=ScheduleTiming(at=due),
        prompt=PromptInput(text="hello"),
        created=due - 10,
        since=due - 10,
        **values,
    )


def claims(eventlog: EventLog, worker: str, *, claim_ms: int = 60_000) -> RunClaims:
    return RunClaims(eventlog.hook_states, worker, claim_ms=claim_ms, late_ms=60_000)


class Ingest:
    """Answers commands as ingest does, after some failures."""

    def __init__(
        self, eventlog: EventLog, *, failures: int = 0, refusals: Sequence[Refused] = ()
    ) -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self.requests = eventlog.requests
        self.prompts: list[dict[str, Any]] = []
        self._failures = failures
        self._refusals = list(refusals)
        self.requests.answerers["fairlead.api.default.session.create"] = self._create
        self.requests.answerers["fairlead.api.default.session.prompt"] = self._prompt

    async def _create(self, body: bytes) -> bytes:
        if self._failures:
            self._failures -= 1
            raise LogUnavailable("nobody answered")
        id_ = json.loads(body)["id"]
        return json.dumps({"data": session_info(id_)}).encode()

    async def _prompt(self, body: bytes) -> bytes:
        if self._refusals:
            return json.dumps(
                {"error": self._refusals.pop().body.model_dump(by_alias=True, exclude_none=True)}
            ).encode()
        command = json.loads(body)
        self.prompts.append(command)
        receipt = {
            "admittedSeq": 2,
            "id": command["id"],
            "sessionID": command["sessionID"],
            "prompt": {"text": "hello"},
            "delivery": "queue",
            "timeCreated": 1,
        }
        return json.dumps({"data": receipt}).encode()


def session_info(id_: str) -> dict[str, Any]:
    tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    return {
        "id": id_,
        "projectID": "p",
        "cost": 0,
        "tokens": tokens,
        "time": {"created": 1, "updated": 1},
        "title": "t",
        "location": {"directory": "/"},
    }


async def test_of_several_processes_one_claims_a_due_time() -> None:
    eventlog, record = memory_eventlog(), schedule(now_ms())
    first = await claims(eventlog, "one").take("default", record)
    second = await claims(eventlog, "two").take("default", record)

    assert isinstance(first, Claim)
    assert isinstance(second, LookAgain)
    assert second.at is not None
    assert second.at > now_ms()


async def test_a_run_that_nobody_noted_is_sent_again_under_the_same_ids() -> None:
    """The process died between the prompt and the note: another one takes over."""
    eventlog, record = memory_eventlog(), schedule(now_ms())
    ingest, sender = Ingest(eventlog), RunSender(eventlog, OPEN, patience_s=5)
    dead = await claims(eventlog, "dead").take("default", record)
    assert isinstance(dead, Claim)
    lost = await sender.send("default", record, dead.due)

    later = claims(eventlog, "alive", claim_ms=0)
    claim = await later.take("default", record)
    assert isinstance(claim, Claim)
    run = await sender.send("default", record, claim.due)
    assert await later.finish("default", record, claim, run) == "noted"
    assert (run.outcome, run.message_id) == ("admitted", lost.message_id)
    assert len(ingest.prompts) == 2
    assert ingest.prompts[0] == ingest.prompts[1]
    # The late note of the first process changes nothing, and nothing is due any more.
    note = await claims(eventlog, "dead").finish("default", record, dead, lost)
    assert note == "noted by another"
    assert await later.take("default", record) == LookAgain(None)


async def test_a_run_waits_for_an_ingest_that_is_away_and_says_for_whom_it_asks() -> None:
    eventlog, record = memory_eventlog(), schedule(now_ms())
    ingest = Ingest(eventlog, failures=2)
    run = await RunSender(eventlog, OPEN, patience_s=30).send("default", record, record.since)

    assert run.outcome == "admitted"
    assert set(ingest.requests.callers) == {"local"}


async def test_a_run_that_nobody_answers_is_never_refused_and_begins_anew() -> None:
    """An outage that is longer than the patience of a run loses no prompt."""
    eventlog = memory_eventlog()
    record = schedule(now_ms())
    await eventlog.schedules.put(
        "default", record.id, record.model_dump_json(by_alias=True, exclude_none=True).encode()
    )
    sender = RunSender(eventlog, OPEN, patience_s=0.1)
    with pytest.raises(RunUnanswered, match=r"session\.create had no answer for 0\.1 s"):
        await sender.send("default", record, record.since)

    clock = ScheduleClock(eventlog, claims(eventlog, "one"), sender, refresh_s=60)
    running = asyncio.create_task(clock.run())
    ingest = Ingest(eventlog, failures=1)
    async with asyncio.timeout(20):
        while await outcome_of(eventlog) != "admitted":
            await asyncio.sleep(0.01)
    await cancel_and_wait(running)
    await clock.close()
    assert len(ingest.prompts) == 1


async def outcome_of(eventlog: EventLog) -> str | None:
    found = await eventlog.hook_states.read("default", "sch_1")
    return None if found is None else ScheduleState.model_validate_json(found.value).last.outcome


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        (LimitReached("10 inputs are pending"), "admitted"),
        (InternalFailure("a defect"), "admitted"),
        (LimitReached("The tenant has 10 sessions", kind="Quota"), "refused"),
        (Forbidden("no scope"), "refused"),
    ],
)
async def test_a_refusal_that_may_pass_is_tried_again_and_a_lasting_one_counts(
    refusal: Refused, outcome: str
) -> None:
    eventlog, record = memory_eventlog(), schedule(now_ms())
    ingest = Ingest(eventlog, refusals=[refusal, refusal])
    run = await RunSender(eventlog, OPEN, patience_s=30).send("default", record, record.since)

    assert run.outcome == outcome
    assert (run.error is None) == (outcome == "admitted")
    assert len(ingest.prompts) == (1 if outcome == "admitted" else 0)


async def test_a_refusal_that_does_not_pass_within_the_patience_counts() -> None:
    eventlog, record = memory_eventlog(), schedule(now_ms())
    Ingest(eventlog, refusals=[LimitReached("10 inputs are pending")] * 100)
    run = await RunSender(eventlog, OPEN, patience_s=0.5).send("default", record, record.since)

    assert run.outcome == "refused"
    assert run.error is not None
    assert run.error.message == "10 inputs are pending"


def test_the_right_of_a_key_is_that_of_the_keys_file_now(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _key, entry = mint_key(["user"], roots=("/work",))
    _other, viewer = mint_key(["viewer"])
    past = datetime.now(UTC) - timedelta(days=1)
    _old, expired = mint_key(["user"], expires=past)
    for known in (entry, viewer, expired):
        add_key(path, known)
    rights = CurrentRights(AuthConfig(keys_file=str(path)), 30)

    def check(by: str, tenant: str = "default") -> object:
        return rights.check(tenant, schedule(now_ms(), by=by), now_ms())

    restrictions = rights.check("default", schedule(1, by=f"key:{entry.id}"), now_ms())
    assert restrictions is not None
    assert restrictions.roots == ("/work",)
    for by, reason in (
        (f"key:{viewer.id}", "session:write"),
        (f"key:{expired.id}", "expired"),
        ("key:unknown", "does not count"),
        ("local", "without a token"),
        ("user:https://elsewhere/me", "issuer"),
    ):
        with pytest.raises(Forbidden, match=reason):
            check(by)
    with pytest.raises(Forbidden, match="does not count"):
        check(f"key:{entry.id}", "rival")
    revoke_key(path, entry.id, at=datetime.now(UTC))
    fresh = CurrentRights(AuthConfig(keys_file=str(path)), 30)
    with pytest.raises(Forbidden, match="does not count"):
        fresh.check("default", schedule(1, by=f"key:{entry.id}"), now_ms())


def test_what_a_service_proved_holds_for_some_days() -> None:
    rights = CurrentRights(AuthConfig(), 30)
    day_ms = 24 * 60 * 60 * 1000
    record = schedule(now_ms(), by="service:billing")

    assert rights.check("default", record, record.changed + 29 * day_ms) is None
    with pytest.raises(Forbidden, match="write it again"):
        rights.check("default", record, record.changed + 31 * day_ms)
