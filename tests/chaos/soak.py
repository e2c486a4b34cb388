"""A soak: hours of load and faults on a cluster, in rounds that are judged one by one.

`make soak MINUTES=60 SEED=7 LOAD=2` prints a line a minute, a report of each round, and a summary.
The state of a failed run is kept.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.session_driver import write_config
from fairlead_testing.stack import Stack, stack
from tests.chaos.chaos_run import ChaosPlan, Report, run_chaos
from tests.chaos.checker import rebuilds_alike, run_verify
from tests.chaos.promises import Violation
from tests.chaos.weather import Damage
from tests.chaos.workload import CONFIG

ROUND_S: Final = 120.0
LINE_S: Final = 60.0
KILOBYTES: Final = 1024


class Soak:
    """Rounds on one running stack."""

    def __init__(self, up: Stack, args: argparse.Namespace) -> None:
        self.total = Report()
        self._up = up
        self._args = args
        self._seconds = args.minutes * 60
        self._begun = time.monotonic()
        self._damage = Damage()
        self._round = 0

    async def run(self) -> None:
        """Run rounds until the time is over. The first broken promise ends the soak."""
        telling = asyncio.create_task(self._tell_every_minute())
        try:
            while self._elapsed_s() < self._seconds and not self.total.broken:
                await self._run_round()
            if not self.total.broken:
                self.total.broken += await check_whole_log(self._up)
        finally:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling

    async def _run_round(self) -> None:
        self._round += 1
        self._damage = Damage()
        seed, left_s = f"{self._args.seed}r{self._round}", self._seconds - self._elapsed_s()
        args = self._args
        plan = ChaosPlan(seed, min(ROUND_S, left_s), args.nodes, args.load, args.calm)
        report = await run_chaos(self._up, plan, damage=self._damage)
        self.total.add(report)
        self._damage = Damage()
        say(f"round {self._round} ({plan.seed}): {report.lines()[-1]}")

    async def _tell_every_minute(self) -> None:
        while True:
            await asyncio.sleep(LINE_S)
            faults = (self.total.kinds + self._damage.kinds).total()
            minutes = self._elapsed_s() / 60
            say(
                f"minute {minutes:.0f}: round {self._round}, {self.total.sessions} sessions judged,"
                f" {faults} faults so far; memory in MB: {memory_line(self._up)}"
            )

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._begun


async def check_whole_log(up: Stack) -> list[Violation]:
    """What `fairlead verify` and a rebuild say in the end."""
    code, output = await run_verify(up)
    broken = [] if code == 0 else [Violation("other", "verify", output[-2000:])]
    if not await rebuilds_alike(up):
        broken.append(Violation("other", "projector", "the read models differ from a rebuild"))
    return broken


def memory_line(up: Stack) -> str:
    """The resident memory of each process."""
    return ", ".join(f"{process.label} {_resident_mb(process.pid)}" for process in up.up.processes)


def _resident_mb(pid: int | None) -> str:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "away"
    size = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0")
    return str(int(size.split()[1]) // KILOBYTES)


def say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


async def soak(args: argparse.Namespace) -> int:
    """Run the soak in a directory of its own; the answer is the exit code."""
    place = Path(tempfile.mkdtemp(prefix=f"fairlead-soak-{args.seed}-"))
    config = write_config(
        place, CONFIG.format(port=free_port()), sweep_age_s=3.0, tools_wait_s=2.0, runner=""
    )
    say(
        f"soak of {args.minutes} minutes, seed {args.seed}, load {args.load}/s, calm {args.calm}, state in {place}"
    )
    scale = {"runner": 2, "tools": 2}
    state = place / "state"
    try:
        async with stack(state, config=config, sim=True, scale=scale, nats_nodes=args.nodes) as up:
            running = Soak(up, args)
            await running.run()
    except BaseException as error:
        say(f"ended by {type(error).__name__}; the state of this run is kept in {place}")
        raise
    tell_summary(running.total, place)
    if running.total.broken:
        return 1
    shutil.rmtree(place, ignore_errors=True)
    return 0


def tell_summary(total: Report, place: Path) -> None:
    """Say what the run was made of, and keep the events of broken sessions beside the state."""
    for session, text in total.transcripts.items():
        (place / f"{session}.txt").write_text(text)
    for violation in total.broken:
        say(f"BROKEN {violation}")
    for line in total.lines():
        say(line)
    if total.broken:
        say(f"the state of this run is kept in {place}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--load", type=float, default=2.0, help="new sessions per second")
    parser.add_argument("--calm", type=float, default=2.5, help="longer times between strikes")
    logging.getLogger().addHandler(logging.NullHandler())
    return asyncio.run(soak(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
