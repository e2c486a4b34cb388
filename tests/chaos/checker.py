"""Checks after the chaos that every promise was kept, from the logs and the side effects alone."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_schema.record import Recorded
from fairlead_session.verify.verify import verify
from fairlead_testing.projection import digest_when_projected
from fairlead_testing.session_driver import events_of, probe_lines, provider_calls
from fairlead_testing.stack import Stack
from tests.chaos.asks import call as _call
from tests.chaos.asks import judge_asks
from tests.chaos.promises import QUIET_S, Kind, Promised, Violation, work_left

# Tools that may never run twice, by the name the workload calls them.
ONCE: Final = frozenset({"probe_once"})
# Those that may run before their start is in the log (docs/adr/0020), and be interrupted then.
FREE: Final = frozenset({"probe_pure"})
PROBES: Final = frozenset({*ONCE, *FREE, "probe_idempotent"})


# Rules that a write of a stale owner breaks. A rule about something that is done once is `doubled`.
STALE_RULES: Final = frozenset(
    {
        *("generation", "released-by-owner", "attempt-owned", "compaction-owned"),
        *("sequence", "purged-last", "started-unsettled"),
    }
)
DOUBLED_RULES: Final = frozenset({"event-id", "one-attempt", "promoted-in-order"})


@dataclass(frozen=True, slots=True)
class Effects:
    """What the outside world noticed: runs of probes, calls of the provider."""

    probes: Sequence[Sequence[str]] = ()
    provider: Mapping[str, int] = field(default_factory=dict)


async def read_effects(up: Stack) -> Effects:
    """The counters of a running stack."""
    return Effects(probe_lines(up), await provider_calls(up))


def judge(
    logs: Mapping[str, list[Recorded]], promised: Promised, noticed: Effects
) -> list[Violation]:
    """Every broken promise."""
    broken: list[Violation] = []
    for session, log in logs.items():
        broken += _judge_rules(session, log)
        if session not in promised.deleted:
            broken += _judge_session(session, log, promised, noticed)
    lost = (promised.receipts.keys() | promised.published.keys()) - logs.keys()
    broken += [Violation("lost", session, "it has receipts and no log") for session in sorted(lost)]
    return [*broken, *_judge_probes(logs, noticed.probes)]


def _judge_rules(session: str, log: list[Recorded]) -> Iterable[Violation]:
    for broken in verify(log):
        detail = f"at {broken.seq}: {broken.rule}: {broken.detail}"
        if broken.rule in STALE_RULES:
            yield Violation("stale", session, detail)
        elif broken.rule in DOUBLED_RULES or broken.rule.endswith("-once"):
            yield Violation("doubled", session, detail)
        else:
            yield Violation("other", session, detail)


def _judge_session(
    session: str, log: list[Recorded], promised: Promised, noticed: Effects
) -> Iterable[Violation]:
    yield from (Violation("stranded", session, undone) for undone in work_left(log))
    yield from _judge_inbox(session, log, promised)
    yield from _judge_provider(session, log, noticed.provider.get(session, 0))
    yield from (
        Violation("lost" if "accepted" in fault else "doubled", session, fault)
        for fault in judge_asks(log, promised.replies)
    )
    if promised.kinds.get(session) == "blind":
        yield from _judge_memory(session, log)


def transcript(log: list[Recorded]) -> str:
    """A log for people who look for what went wrong."""
    return "\n".join(
        f"{recorded.seq:>4} {recorded.time} {recorded.event!r}"[:400] for recorded in log
    )


def _judge_inbox(session: str, log: list[Recorded], promised: Promised) -> Iterable[Violation]:
    """Every acknowledged prompt admitted once and in order, and promoted once."""
    receipts = promised.receipts.get(session, [])
    published = sorted(promised.published.get(session, ()))
    admitted = [event.message_id for event in events_of(log, "prompt.admitted")]
    promoted = Counter(event.message_id for event in events_of(log, "prompt.promoted"))
    for id_ in (*receipts, *published):
        if promoted[id_] != 1:
            kind: Kind = "doubled" if promoted[id_] else "lost"
            detail = f"{id_} has a receipt and was promoted {promoted[id_]} times"
            yield Violation(kind, session, detail)
    if [id_ for id_ in admitted if id_ in receipts] != receipts:
        yield Violation("other", session, f"receipts {receipts} were admitted as {admitted}")


def _judge_provider(session: str, log: list[Recorded], calls: int) -> Iterable[Violation]:
    """No call without its recorded attempt or compaction; an answer or a summary needs a call."""
    attempts = len(events_of(log, "attempt.dispatched")) + len(events_of(log, "compaction.started"))
    answers = len(events_of(log, "step.ended")) + len(events_of(log, "compaction.ended"))
    if not answers <= calls <= attempts:
        detail = f"{attempts} attempts, {calls} provider calls, {answers} answers"
        yield Violation("doubled", session, detail)


def _judge_memory(session: str, log: list[Recorded]) -> Iterable[Violation]:
    """The model still knows the first message, whatever was summarised and whatever died.

    Prompts that arrive together may be too long to summarise; the log then has a failed compaction.
    """
    if any(event.outcome == "failed" for event in events_of(log, "compaction.failed")):
        return
    texts = [event.text for event in events_of(log, "text.ended")]
    if not texts or texts[-1] != "the cargo is salt":
        yield Violation("lost", session, f"forgot its cargo: {texts[-1:]}")


def _judge_probes(
    logs: Mapping[str, list[Recorded]], lines: Sequence[Sequence[str]]
) -> Iterable[Violation]:
    """Each `once` call ran at most once; what succeeded ran; what ran was started in the log.

    A model that forgot a call in a compaction may call again with the same key.
    """
    begun = Counter(line[1] for line in lines if line[-1] == "begun")
    for session, log in logs.items():
        started = {_call(event) for event in events_of(log, "tool.started")}
        succeeded = {_call(event) for event in events_of(log, "tool.succeeded")}
        called = {
            _call(event): event for event in events_of(log, "tool.called") if event.tool in PROBES
        }
        starts = Counter(str(called[call].input.get("key")) for call in started if call in called)
        for call, event in called.items():
            key = str(event.input.get("key"))
            if event.tool in ONCE and begun[key] > max(1, starts[key]):
                yield Violation("doubled", session, f"once call {key} ran {begun[key]} times")
            if event.tool not in FREE and begun[key] and not starts[key]:
                yield Violation("stale", session, f"call {key} ran and was never started")
            if call in succeeded and not begun[key]:
                yield Violation("other", session, f"call {key} succeeded and never ran")


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
