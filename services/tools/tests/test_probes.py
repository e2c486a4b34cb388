"""Probes write a line when a run begins and one when it ends, so that a checker counts runs."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.events import InterruptRequested
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools import probes
from services.tools.tests.conftest import Harness, run_worker, wait_until


async def put_call(harness: Harness, name: str, **fields: Any) -> None:  # noqa: ANN401
    tool = harness.registry.find(name)
    assert tool is not None
    await harness.call(tool, **fields)


@pytest.mark.parametrize("name", ["probe_pure", "probe_idempotent", "probe_once", "probe_slow"])
async def test_a_run_leaves_a_line_before_and_after_its_delay(
    harness: Harness, tmp_path: Path, name: str
) -> None:
    """E-20: the chaos checker counts these lines."""
    file = tmp_path / "runs"
    probes.register(harness.registry, str(file))
    await put_call(harness, name, key="a/1", delay_ms=1)

    assert await harness.serve_all() == ["{'key': 'a/1', 'runs': 1}"]

    line = f"{name} a/1 wkr_a {os.getpid()}"
    assert file.read_text().splitlines() == [f"{line} begun", f"{line} ended"]
    assert (await asyncio.to_thread(probes.count_runs, str(file), name, "a/1")) == 1


async def test_a_crashing_probe_begins_and_never_ends(harness: Harness, tmp_path: Path) -> None:
    """E-07: the error is the probe's own, and a call may name another file."""
    file = tmp_path / "other"
    probes.register(harness.registry, None)
    await put_call(harness, "probe_crash", key="k", path=str(file))

    assert await harness.serve_all() == ["Tool execution failed: probe crashed: k"]
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["begun"]


async def test_an_interrupted_probe_never_ends(harness: Harness, tmp_path: Path) -> None:
    """E-16: the slow probe has a long delay by default."""
    file = tmp_path / "runs"
    probes.register(harness.registry, str(file))
    await put_call(harness, "probe_slow", key="k")

    async with run_worker(harness.worker()):
        await wait_until(lambda: file.exists() and "begun" in file.read_text())
        await harness.wait_for_starts(1)
        await harness.write(InterruptRequested())
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == [INTERRUPTED_TOOL]
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["begun"]


@pytest.mark.parametrize("fields", [{}, {"key": "a b"}, {"key": ""}, {"key": "k", "delay_ms": -1}])
async def test_a_probe_refuses_what_would_spoil_its_lines(
    harness: Harness, tmp_path: Path, fields: dict[str, object]
) -> None:
    """J-17: no probe runs."""
    probes.register(harness.registry, str(tmp_path / "runs"))
    await put_call(harness, "probe_pure", **fields)

    (message,) = await harness.serve_all()

    assert message.startswith("Invalid tool input: ")
    assert not (tmp_path / "runs").exists()
