"""How long a page's own thread was busy: a trace of Chromium's tasks, by the clock and by processor time.

On a machine that runs a whole stack beside the browser a task waits for its turn. The processor time is what
the page itself costs.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from playwright.async_api import Browser, CDPSession

MAIN_THREAD: Final = "CrRendererMain"
_SETTINGS: Final = {"includedCategories": ["toplevel"]}


@dataclass
class Tasks:
    """The longest tasks of the page, in milliseconds, once the trace has ended."""

    count: int = 0
    longest: float = 0.0
    """By the clock, waits for a processor included."""
    longest_busy: float = 0.0
    """By processor time."""


@asynccontextmanager
async def trace_tasks(browser: Browser) -> AsyncIterator[Tasks]:
    """Trace the tasks of the busiest page for the length of a block."""
    tasks = Tasks()
    cdp = await browser.new_browser_cdp_session()
    await cdp.send("Tracing.start", {"transferMode": "ReturnAsStream", "traceConfig": _SETTINGS})
    try:
        yield tasks
    finally:
        _count(tasks, await _end_trace(cdp))


async def _end_trace(cdp: CDPSession) -> list[dict[str, Any]]:
    ended: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    # Playwright takes functions alone, and the method of a future is none.
    def note(event: dict[str, Any]) -> None:
        ended.set_result(event)

    cdp.on("Tracing.tracingComplete", note)
    await cdp.send("Tracing.end")
    stream, text = (await ended)["stream"], ""
    while True:
        chunk = await cdp.send("IO.read", {"handle": stream, "size": 4_000_000})
        text += chunk["data"]
        if chunk.get("eof"):
            events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
            return events


def _count(tasks: Tasks, events: list[dict[str, Any]]) -> None:
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"].get("name") == MAIN_THREAD
    }
    for thread in threads:
        own = [
            event
            for event in events
            if (event.get("pid"), event.get("tid")) == thread
            and event["ph"] == "X"
            and "RunTask" in event["name"]
        ]
        if len(own) > tasks.count:
            tasks.count = len(own)
            tasks.longest = round(max(event["dur"] for event in own) / 1000, 1)
            tasks.longest_busy = round(max(event.get("tdur", 0) for event in own) / 1000, 1)
