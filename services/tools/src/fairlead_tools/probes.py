"""Probe tools: each run appends lines to a file, so that tests can count the runs.

A run appends `<tool> <key> <worker> <pid> begun` before its delay and the same with `ended` after it,
each synced to disk: a worker killed in between leaves the first line alone.
"""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import RetryClass
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallContext, Tool

DELAY_MS_MAX: Final = 600_000
SLOW_MS: Final = 30_000


class ProbeInput(BaseModel):
    """The input of a probe."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(pattern=r"^\S{1,200}$")
    delay_ms: int = Field(default=0, ge=0, le=DELAY_MS_MAX)
    path: str | None = Field(default=None, description="another counter file")


class SlowInput(ProbeInput):
    """The input of the slow probe."""

    delay_ms: int = Field(default=SLOW_MS, ge=0, le=DELAY_MS_MAX)


class ProbeOutput(BaseModel):
    """How often the probe has begun to run with this key, this time included."""

    key: str
    runs: int


PROBES: Final[tuple[tuple[str, RetryClass], ...]] = (
    ("probe_pure", "pure"),
    ("probe_idempotent", "idempotent"),
    ("probe_once", "once"),
    ("probe_crash", "pure"),
    ("probe_slow", "pure"),
)


def register(registry: Registry, file: str | None) -> None:
    """Register the probes. They write to `file`, unless a call names another."""
    for name, retry in PROBES:
        registry.register(
            Tool(
                name=name,
                description=f"Appends a line to a file and answers. For tests only. Retry: {retry}.",
                input=SlowInput if name == "probe_slow" else ProbeInput,
                output=ProbeOutput,
                execute=partial(run_probe, name, file),
                retry=retry,
                timeout_s=DELAY_MS_MAX / 1000,
            )
        )


async def run_probe(
    name: str, file: str | None, request: ProbeInput, context: CallContext
) -> ProbeOutput:
    """Run a probe once."""
    path = request.path or file
    line = f"{name} {request.key} {context.worker} {os.getpid()}"
    if path is not None:
        await asyncio.to_thread(_append, path, f"{line} begun")
    if request.delay_ms:
        await asyncio.sleep(request.delay_ms / 1000)
    if name == "probe_crash":
        raise RuntimeError(f"probe crashed: {request.key}")
    if path is None:
        # Without a file a probe only answers, as the benchmark needs it.
        return ProbeOutput(key=request.key, runs=0)
    await asyncio.to_thread(_append, path, f"{line} ended")
    runs = await asyncio.to_thread(count_runs, path, name, request.key)
    return ProbeOutput(key=request.key, runs=runs)


def count_runs(path: str, name: str, key: str) -> int:
    """How many runs of a probe with this key the file shows."""
    lines = (line.split() for line in Path(path).read_text().splitlines())
    return sum((line[0], line[1], line[-1]) == (name, key, "begun") for line in lines)


def _append(path: str, line: str) -> None:
    # One write of one line in append mode, so that lines of several processes never mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
