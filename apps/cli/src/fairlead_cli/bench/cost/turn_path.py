"""Times the stages of a turn in one session: when each message of it passes the NATS server."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_cli.bench.admissions import create_sessions
from fairlead_cli.bench.cost.run import open_target
from fairlead_cli.bench.measurement import Timing, summarise
from fairlead_cli.bench.turns import Listener, open_listener
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_schema.subjects import ROOT

WARM: Final = 20
# Between two turns, so that the end of one is not in the next.
PAUSE_S: Final = 0.02
FLUSH_S: Final = 5.0

# Each stage: its name, what its subject begins with, and which message of that kind it is.
STAGES: Final = (
    ("the gateway asks ingest", f"{ROOT}.api.", 0),
    ("the admission is stored", f"{ROOT}.commit.", 0),
    ("the wake is stored", f"{ROOT}.wake.", 0),
    ("the runner looks at the location", f"{ROOT}.observe.", 0),
    ("the boundary is stored", f"{ROOT}.commit.", 1),
    ("the first fragment of the answer", f"{ROOT}.delta.", 0),
    ("the end is stored", f"{ROOT}.commit.", 2),
)
RECEIPT: Final = "the client has its receipt"
ENDED: Final = "the client has the end of the step"


@dataclass
class Passing:
    """The messages of one turn, each with its time."""

    messages: list[tuple[float, str]]

    def note(self, msg: InboundMessage) -> None:
        self.messages.append((time.perf_counter(), msg.subject))

    def find(self, prefix: str, place: int) -> float | None:
        """When a message of a kind passed; None if it did not, as in one process."""
        times = [at for at, subject in self.messages if subject.startswith(prefix)]
        return times[place] if len(times) > place else None


async def time_turn_path(
    *, turns: int, solo: bool, progress: Callable[[str], None]
) -> dict[str, Timing]:
    """How long after its prompt each stage of a turn is reached, over many turns of one session."""
    progress("starting the stack")
    passing = Passing([])
    async with (
        open_target(solo=solo) as (stack, target),
        open_link(stack.operator, name="fairlead-bench") as link,
    ):
        (session,) = await create_sessions(target.eventlog, 1)
        await link.listen(f"{ROOT}.>", passing.note)
        await link.flush(timeout_s=FLUSH_S)
        progress("turns")
        async with open_listener(target.url, session) as listener:
            for number in range(WARM):
                await listener.take_turn(f"warm {number}")
            reached: dict[str, list[float]] = {}
            for number in range(turns):
                await asyncio.sleep(PAUSE_S)
                for name, seconds in (await _take_turn(listener, passing, number)).items():
                    reached.setdefault(name, []).append(seconds)
    timings = {name: summarise(seconds, sum(seconds)) for name, seconds in reached.items()}
    return dict(sorted(timings.items(), key=lambda item: item[1].p50_ms))


async def _take_turn(listener: Listener, passing: Passing, number: int) -> dict[str, float]:
    passing.messages.clear()
    start = time.perf_counter()
    path = f"/api/session/{listener.session}/prompt"
    await listener.poster.post(path, {"prompt": {"text": f"turn {number}"}})
    times: dict[str, float | None] = {RECEIPT: time.perf_counter()}
    times[ENDED] = await listener.turn_ends.get()
    await asyncio.sleep(PAUSE_S)
    times |= {name: passing.find(prefix, place) for name, prefix, place in STAGES}
    return {name: at - start for name, at in times.items() if at is not None}
