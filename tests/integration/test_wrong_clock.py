"""A machine whose clock is an hour off, beside one whose clock is right: no clock decides anything."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from typing_extensions import override

from fairlead_testing.earlier_release import run_services
from fairlead_testing.releases import Release
from fairlead_testing.stack import Stack, check_log, event_types, stack

pytestmark = pytest.mark.integration

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
CALL = '[[sim: tool=glob args=\'{"pattern": "*.%s"}\' ; answer="done"]] use a tool'
SERVICES = ("ingest", "runner", "tools", "projector")


@dataclass(frozen=True)
class WrongClock(Release):
    """A machine whose clock is off. Its timers run at the right pace."""

    offset: str = "+0h"

    @override
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME": self.offset,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


async def converse(up: Stack, sessions: list[str], word: str) -> None:
    for session in sessions:
        for text in (f"hello {word}", CALL % word):
            answer = await up.http.post(
                f"/api/session/{session}/prompt", json={"prompt": {"text": text}}
            )
            assert answer.status_code == 200, answer.text
    for session in sessions:
        await up.wait_until_rested(session)


@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("offset", ["+1h", "-1h"])
async def test_a_machine_with_a_wrong_clock_loses_and_doubles_nothing(
    tmp_path: Path, offset: str
) -> None:
    """Safety rests on the log. A wrong clock shows in the times of events, and nowhere else."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    async with stack(tmp_path / "state") as up:
        sessions = [await up.session() for _ in range(3)]
        async with run_services(up.up, WrongClock(offset=offset), SERVICES):
            await converse(up, sessions, "both")
            for name in SERVICES:
                await up.up.process(name).stop()
            await converse(up, sessions, "wrong")
            for name in SERVICES:
                await up.up.process(name).start()
            await up.up.wait_ready()
        await converse(up, sessions, "right")

        for session in sessions:
            events = await up.events(session)
            check_log(events)
            types = event_types(events)
            assert types.count("prompt.admitted") == types.count("prompt.promoted") == 6
            assert types.count("tool.called") == types.count("tool.succeeded") == 3
            assert "step.failed" not in types
            times = [recorded.time for recorded in events]
            assert max(times) - min(times) > 3_000_000, "the clock was off by an hour"
