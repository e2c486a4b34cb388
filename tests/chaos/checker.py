"""Checks after the chaos that every promise was kept, from the logs and the side effects alone."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_schema.record import Recorded
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_session.verify.verify import verify
from fairlead_testing.projection import digest_when_projected
from fairlead_testing.session_driver import events_of, probe_lines, provider_calls
from fairlead_testing.stack import Stack
from tests.chaos.asks import call as _call
from tests.chaos.asks import judge_asks, waiting_asks

QUIET_S: Final = 120.0
# Tools that may never run twice, by the name the workload calls them.
ONCE: Final = frozenset({"probe_once"})
# Those that may run before their start is in the log (docs/adr/0020), and be interrupted then.
FREE: Final = frozenset({"probe_pure"})


@dataclass(slots=True)
class Promised:
    """What callers were promised: receipts of prompts, in order, and which replies were accepted."""

    receipts: dict[str, list[str]] = field(default_factory=dict)
    replies: dict[str, set[str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def acknowledge(self, session: str, message: str) -> None:
        self.receipts.setdefault(session, []).append(message)

    def reply(self, request: str, word: str) -> None:
        self.replies.setdefault(request, set()).add(word)


@dataclass(frozen=True, slots=True)
class Effects:
    """What the outside world noticed: runs of probes, calls of the provider."""

    probes: Sequence[Sequence[str]] = ()
    provider: Mapping[str, int] = field(default_factory=dict)


async def wait_until_quiet(up: Stack, sessions: Iterable[str]) -> dict[str, list[Recorded]]:
    """Wait until no session and no person has anything left to do; the log of every session then.

    The error names a session that did not finish.
    """
    logs: dict[str, list[Recorded]] = {}
    waiting, log = list(sessions), list[Recorded]()
    try:
        async with asyncio.timeout(QUIET_S):
            while waiting:
                with suppress(LogError):
                    log = await up.events(waiting[-1])
                    if log and not work_left(log):
                        logs[waiting.pop()] = log
                        continue
                await asyncio.sleep(0.1)
    except TimeoutError:
        summary = f"{len(waiting)} sessions, {waiting[-1]} among them: {work_left(log)}"
        raise AssertionError(f"{summary}\n{transcript(log)}") from None
    return logs


async def read_effects(up: Stack) -> Effects:
    """The counters of a running stack."""
    return Effects(probe_lines(up), await provider_calls(up))


def judge(logs: Mapping[str, list[Recorded]], promised: Promised, noticed: Effects) -> list[str]:
    """Every fault, a sentence each."""
    faults: list[str] = []
    for session, log in logs.items():
        faults += [
            f"{session} at {violation.seq}: {violation.rule}: {violation.detail}"
            for violation in verify(log)
        ]
        faults += [f"{session} should still move: {undone}" for undone in work_left(log)]
        faults += [
            f"{session}: {fault}" for fault in _judge_inbox(log, promised.receipts.get(session, []))
        ]
        faults += [
            f"{session}: {fault}"
            for fault in _judge_provider(log, noticed.provider.get(session, 0))
        ]
        faults += [f"{session}: {fault}" for fault in judge_asks(log, promised.replies)]
        if promised.kinds.get(session) == "blind":
            faults += [f"{session}: {fault}" for fault in _judge_memory(log)]
    faults += [f"{session} has receipts and no log" for session in promised.receipts.keys() - logs]
    return [*faults, *_judge_probes(logs, noticed.probes)]


def work_left(log: list[Recorded]) -> tuple[str, ...]:
    """What should still move, by itself or by a person."""
    return (*find_unfinished_work(log), *(f"{id_} waits for a person" for id_ in waiting_asks(log)))


def transcript(log: list[Recorded]) -> str:
    """A log for people who look for what went wrong."""
    return "\n".join(
        f"{recorded.seq:>4} {recorded.time} {recorded.event!r}"[:400] for recorded in log
    )


def _judge_inbox(log: list[Recorded], receipts: list[str]) -> list[str]:
    """Every acknowledged prompt admitted once and in order, and promoted once."""
    admitted = [event.message_id for event in events_of(log, "prompt.admitted")]
    promoted = Counter(event.message_id for event in events_of(log, "prompt.promoted"))
    faults = [f"{id_} has a receipt and was promoted {promoted[id_]} times" for id_ in receipts
            if promoted[id_] != 1]  # fmt: skip
    if [id_ for id_ in admitted if id_ in receipts] != receipts:
        faults.append(f"receipts {receipts} were admitted as {admitted}")
    return faults


def _judge_provider(log: list[Recorded], calls: int) -> list[str]:
    """No call without its recorded attempt or compaction; an answer or a summary needs a call."""
    attempts = len(events_of(log, "attempt.dispatched")) + len(events_of(log, "compaction.started"))
    answers = len(events_of(log, "step.ended")) + len(events_of(log, "compaction.ended"))
    if answers <= calls <= attempts:
        return []
    return [f"{attempts} attempts, {calls} provider calls, {answers} answers"]


def _judge_memory(log: list[Recorded]) -> list[str]:
    """The model still knows the first message, whatever was summarised and whatever died.

    Prompts that arrive together may be too long to summarise; the log then has a failed compaction.
    """
    if any(event.outcome == "failed" for event in events_of(log, "compaction.failed")):
        return []
    texts = [event.text for event in events_of(log, "text.ended")]
    return [] if texts and texts[-1] == "the cargo is salt" else [f"forgot its cargo: {texts[-1:]}"]


def _judge_probes(logs: Mapping[str, list[Recorded]], lines: Sequence[Sequence[str]]) -> list[str]:
    """Each `once` call ran at most once; what succeeded ran; what ran was started in the log.

    A model that forgot a call in a compaction may call again with the same key.
    """
    begun = Counter(line[1] for line in lines if line[-1] == "begun")
    faults = []
    for session, log in logs.items():
        started = {_call(event) for event in events_of(log, "tool.started")}
        succeeded = {_call(event) for event in events_of(log, "tool.succeeded")}
        called = {_call(event): event for event in events_of(log, "tool.called")}
        starts = Counter(str(called[call].input.get("key")) for call in started if call in called)
        for call, event in called.items():
            key = str(event.input.get("key"))
            if event.tool in ONCE and begun[key] > max(1, starts[key]):
                faults.append(f"{session}: once call {key} ran {begun[key]} times")
            if event.tool not in FREE and begun[key] and not starts[key]:
                faults.append(f"{session}: call {key} ran and was never started")
            if call in succeeded and not begun[key]:
                faults.append(f"{session}: call {key} succeeded and never ran")
    return faults


async def run_verify(up: Stack) -> tuple[int | None, str]:
    """What `fairlead verify` says of the whole log, as an operator runs it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "verify", "--state", str(up.up.state.root)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def rebuilds_alike(up: Stack) -> bool:
    """Whether the read models equal a fresh rebuild of the whole log."""
    before = await digest_when_projected(up, timeout_s=QUIET_S)
    await rebuild(up.up.postgres, up.eventlog, progress=lambda _progress: None)
    return await digest(up.up.postgres) == before
