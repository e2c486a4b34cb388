"""Probes: one line when a run begins, one when it ends, so that a checker can count runs."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead_schema.events import InterruptRequested
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools import probes
from services.tools.tests.conftest import World, standing, until


async def called(world: World, name: str, **asked: Any) -> None:  # noqa: ANN401
    found = world.registry.find(name)
    assert found is not None
    await world.call(found, **asked)


@pytest.mark.parametrize("name", ["probe_pure", "probe_idempotent", "probe_once", "probe_slow"])
async def test_a_run_leaves_a_line_before_and_after_its_delay(
    world: World, tmp_path: Path, name: str
) -> None:
    """E-20: what the chaos checker counts."""
    file = tmp_path / "runs"
    probes.register(world.registry, str(file))
    await called(world, name, key="a/1", delay_ms=1)

    assert await world.served() == ["{'key': 'a/1', 'runs': 1}"]

    line = f"{name} a/1 wkr_a {os.getpid()}"
    assert file.read_text().splitlines() == [f"{line} begun", f"{line} ended"]
    assert (await asyncio.to_thread(probes.count_runs, str(file), name, "a/1")) == 1


async def test_a_crashing_probe_begins_and_never_ends(world: World, tmp_path: Path) -> None:
    """E-07: its failure is its own; a call may name another file."""
    file = tmp_path / "other"
    probes.register(world.registry, None)
    await called(world, "probe_crash", key="k", path=str(file))

    assert await world.served() == ["Tool execution failed: probe crashed: k"]
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["begun"]


async def test_an_interrupted_probe_never_ends(world: World, tmp_path: Path) -> None:
    """E-16: the slow one is slow unless told otherwise."""
    file = tmp_path / "runs"
    probes.register(world.registry, str(file))
    await called(world, "probe_slow", key="k")

    async with standing(world.worker()):
        await until(lambda: file.exists() and "begun" in file.read_text())
        await world.started(1)
        await world.write(InterruptRequested())
        await until(lambda: not world.jobs)

    assert await world.settlements() == [INTERRUPTED_TOOL]
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["begun"]


@pytest.mark.parametrize(
    "asked", [{}, {"key": "a b"}, {"key": ""}, {"key": "k", "delay_ms": -1}, {"key": "k", "x": 1}]
)
async def test_a_probe_refuses_what_would_spoil_its_lines(
    world: World, tmp_path: Path, asked: dict[str, object]
) -> None:
    """J-17: nothing is run."""
    probes.register(world.registry, str(tmp_path / "runs"))
    await called(world, "probe_pure", **asked)

    (message,) = await world.served()

    assert message.startswith("Invalid tool input: ")
    assert not (tmp_path / "runs").exists()
