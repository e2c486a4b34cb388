"""The console under load and in its rarer flows, in a real Chromium against a real stack. Figures are printed."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.console_browser import (
    WITHOUT_CHROMIUM,
    Console,
    open_browser,
    open_console,
)
from fairlead_testing.console_trace import trace_tasks
from fairlead_testing.node_packages import install_package
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(600),
    WITHOUT_CHROMIUM,
]

CONFIG = """
[agent.explore]
mode = "subagent"
description = "Looks around"
"""
MODEL = ModelRef(provider_id="sim", id="fast")
EXCHANGES = 2_500
SESSIONS = 10_000
ELEMENTS_MAX = 400
BUSY_MAX_MS = 50
"""What one task of the page may cost in processor time. The clock counts other processes too."""
WATCH = """() => {
  window.longTasks = [];
  window.frames = [];
  new PerformanceObserver((list) => list.getEntries().forEach((e) => longTasks.push(e.duration))).observe({ type: "longtask" });
  let last = performance.now();
  const step = (now) => { frames.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""
SCROLL = """async (steps) => {
  const view = document.querySelector(".scroller");
  longTasks.length = frames.length = 0;
  let most = 0;
  for (let at = 0; at < steps; at += 1) {
    view.scrollTop += at % 2 ? 900 : 700;
    await new Promise(requestAnimationFrame);
    most = Math.max(most, view.querySelectorAll(".item, .session-row").length);
  }
  for (let at = 0; at < steps; at += 1) {
    view.scrollTop -= 800;
    await new Promise(requestAnimationFrame);
  }
  const sorted = [...frames].sort((a, b) => a - b);
  return { most, worst: Math.round(sorted.at(-1)), p99: Math.round(sorted[Math.floor(sorted.length * 0.99)]),
           frames: frames.length, longTasks: longTasks.map(Math.round) };
}"""
EMPTY = """async (steps) => {
  const view = document.createElement("div");
  view.className = "scroller";
  view.style.height = "800px";
  view.append(Object.assign(document.createElement("div"), { style: "height: 900000px" }));
  document.body.replaceChildren(view);
  return await (SCROLL)(steps);
}""".replace("SCROLL", SCROLL)
"""What the machine makes of a page without anything in it: the rest is the console's."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place: Path = tmp_path_factory.mktemp("console")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def console(up: Stack, browser: Browser) -> AsyncIterator[Console]:
    async with open_console(up, browser) as signed_in:
        await signed_in.sign_in()
        yield signed_in


async def send(up: Stack, session_id: str, prompt: str) -> None:
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()


def show(name: str, figures: Any) -> None:  # noqa: ANN401 - JSON
    print(f"\n{name}, load {os.getloadavg()[0]:.1f}: {json.dumps(figures)}")  # noqa: T201 - a figure of a bench


def exchange(number: int) -> tuple[SessionEvent, ...]:
    """A prompt and its answer, as a turn leaves them in the log."""
    mine, answer, now = f"msg_u{number:06}", f"msg_a{number:06}", ids.now_ms()
    prompt = Prompt(text=f"Question {number}: what is next?")
    text = f"Answer {number}.\n\n- one **thing**\n- another\n\n```py\nvalue = {number}\n```" + (
        "\n\nA longer paragraph. " * (number % 7)
    )
    return (
        PromptAdmitted(message_id=mine, prompt=prompt, delivery="queue"),
        PromptPromoted(message_id=mine, prompt=prompt, created=now),
        StepStarted(assistant_message_id=answer, agent="build", model=MODEL),
        TextStarted(assistant_message_id=answer, text_id="t"),
        TextEnded(assistant_message_id=answer, text_id="t", text=text),
        StepEnded(
            assistant_message_id=answer,
            finish="stop",
            cost=0.001,
            tokens=Tokens(input=900 + number, output=40),
        ),
    )


async def grow_transcript(up: Stack, session_id: str, exchanges: int) -> None:
    """Write so many exchanges into the log of a session, and wait until they are projected."""
    at = Address(DEFAULT_TENANT, session_id)
    head = await up.eventlog.log.head(at)
    for first in range(0, exchanges, 50):
        events = [
            event
            for number in range(first, min(first + 50, exchanges))
            for event in exchange(number)
        ]
        drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)
        commit = await up.eventlog.log.append(at, ids.commit_id(), drafts, after=head)
        head = commit.head
    async with asyncio.timeout(120):
        while True:
            page = (await up.http.get(f"/api/session/{session_id}/message?limit=1")).json()
            if page["seq"] >= head.seq:
                return
            await asyncio.sleep(0.2)


async def test_five_thousand_messages_scroll_with_few_elements(
    up: Stack, browser: Browser, console: Console
) -> None:
    session_id = await up.session()
    await grow_transcript(up, session_id, EXCHANGES)
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".item").last).to_contain_text("build · fast")
    await page.evaluate(
        """async () => {
          const store = document.querySelector("fl-session").store;
          while (store.older) await store.loadOlder();
        }"""
    )
    loaded = await page.evaluate(
        "() => document.querySelector('fl-session').store.state.items.length"
    )
    await page.evaluate(WATCH)
    await page.evaluate("() => { document.querySelector('.scroller').scrollTop = 0; }")

    async with trace_tasks(browser) as tasks:
        figures = await page.evaluate(SCROLL, 200)

    show("scroll of 5,000 messages", {**figures, "tasks ms": asdict(tasks)})
    await console.keep_picture("long-transcript")
    assert loaded == 2 * EXCHANGES
    assert tasks.longest_busy < BUSY_MAX_MS
    assert figures["most"] < ELEMENTS_MAX
    await page.evaluate("() => document.querySelector('fl-session').list.toEnd()")
    await expect(page.locator(".assistant").last).to_contain_text(f"Answer {EXCHANGES - 1}.")


async def test_ten_thousand_sessions_scroll_with_few_elements(
    up: Stack, browser: Browser, console: Console
) -> None:
    created: list[str] = []
    for _ in range(0, SESSIONS, 100):
        created = await asyncio.gather(*(up.session() for _ in range(100)))
        await wait_until_listed(up, created)
    page = console.page
    await page.goto(console.address)
    await page.wait_for_selector(".session-row")
    await page.evaluate(
        """async () => {
          const view = document.querySelector("fl-sessions");
          while (view.cursor !== null) await view.loadPage();
          view.draw();
        }"""
    )
    loaded = await page.evaluate("() => document.querySelector('fl-sessions').ids.size")
    await page.evaluate(WATCH)

    async with trace_tasks(browser) as tasks:
        figures = await page.evaluate(SCROLL, 200)
    show("scroll of 10,000 sessions", {**figures, "tasks ms": asdict(tasks)})
    async with trace_tasks(browser) as busy, asyncio.TaskGroup() as group:
        work = group.create_task(keep_working(up, created))
        lively = await page.evaluate(SCROLL, 200)
        work.cancel()
    show("the same while sessions work", {**lively, "tasks ms": asdict(busy)})
    show("an empty page", await page.evaluate(EMPTY, 200))

    assert tasks.longest_busy < BUSY_MAX_MS
    assert busy.longest_busy < BUSY_MAX_MS
    assert loaded >= SESSIONS
    assert figures["most"] < ELEMENTS_MAX


async def keep_working(up: Stack, session_ids: list[str]) -> None:
    """Give one session after the other something to do, so that rows change all the time."""
    for session_id in session_ids:
        await send(up, session_id, "Go [[sim: answer='one two three' chunks=3 delay_ms=100]]")
        await asyncio.sleep(0.2)


async def wait_until_listed(up: Stack, session_ids: list[str]) -> None:
    """Wait until the read models have the sessions."""
    path = f"/api/session/overview?ids={','.join(session_ids)}"
    async with asyncio.timeout(60):
        while len((await up.http.get(path)).json()["data"]) < len(session_ids):
            await asyncio.sleep(0.05)


async def test_ten_thousand_deltas_leave_memory_flat_and_input_free(
    up: Stack, browser: Browser, console: Console
) -> None:
    session_id = await up.session()
    words = " ".join(f"w{number}" for number in range(10_000))
    await console.open(session_id)
    page = console.page
    cdp = await console.context.new_cdp_session(page)
    await page.evaluate(WATCH)
    before = await heap(page, cdp)
    await up.http.patch(f"/api/session/{session_id}", json={"title": "Ten thousand"})
    scenario = f'[[sim: answer="{words}" chunks=10000 delay_ms=1]]'
    async with trace_tasks(browser) as tasks:
        await send(up, session_id, f"Go {scenario}")
        await expect(page.locator(".prose.live")).to_contain_text("w20")
        await page.fill(".composer textarea", "I can still write")
        assert await page.input_value(".composer textarea") == "I can still write"
        await expect(page.locator(".session-head .state")).to_have_text("Idle", timeout=180_000)
        waits = await page.evaluate("() => longTasks.map(Math.round)")
    after = await heap(page, cdp)

    figures = {"heap MB before": before, "after": after, "long tasks ms": waits}
    show("10,000 deltas", {**figures, "tasks ms": asdict(tasks)})
    assert tasks.longest_busy < BUSY_MAX_MS
    await expect(page.locator(".assistant .text")).to_contain_text("w9999")
    assert after - before < 30, "the text, its elements and the events, and nothing per delta"


async def heap(page: Page, cdp: Any) -> float:  # noqa: ANN401 - a session of the debugger
    await cdp.send("HeapProfiler.collectGarbage")
    usage = await cdp.send("Runtime.getHeapUsage")
    await page.evaluate("() => 0")
    return round(float(usage["usedSize"]) / 1_000_000, 1)


async def test_the_page_paints_soon_and_loads_little(up: Stack, console: Console) -> None:
    page = console.page
    figures = []
    for _ in range(5):
        async with page.expect_response(f"{console.address}/"):
            await page.goto(console.address)
        await page.wait_for_selector(".session-row, .empty h2")
        figures.append(
            await page.evaluate(
                """() => ({
                  paint: Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime
                    - performance.getEntriesByType("navigation")[0].responseEnd),
                  bytes: performance.getEntriesByType("resource").filter((e) => e.name.includes("/console/"))
                    .reduce((sum, e) => sum + e.decodedBodySize, 0),
                })"""
            )
        )

    show("first paint after the HTML, in ms, and bytes", figures)
    assert up.up.http == console.address
    assert 0 < figures[0]["bytes"] < 200_000


async def test_a_sub_agent_has_a_link_and_its_parent_another(up: Stack, console: Console) -> None:
    session_id = await up.session()
    task = json.dumps({"description": "Look", "prompt": "Look around", "agent": "explore"})
    await send(up, session_id, f"[[sim: tool=task args='{task}' ; answer=done]] go")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".tool-state")).to_have_text("done")
    await page.click(".tool > summary")
    await page.click(".child")
    await expect(page.locator(".facts-line a")).to_contain_text("sub-agent")
    await expect(page.locator(".assistant").first).to_contain_text("Look around")
    await console.keep_picture("sub-agent")
    await page.click(".facts-line a")
    await page.wait_for_url(f"**/s/{session_id}")


async def test_a_compaction_is_a_fold_in_the_transcript(up: Stack, console: Console) -> None:
    session_id = await up.session()
    for number in range(3):
        await send(up, session_id, f"Fact: the number {number} is even or odd.")
        await up.http.post(f"/api/session/{session_id}/wait")
    await console.open(session_id)
    page = console.page
    await page.get_by_label("More").click()
    await page.get_by_role("menuitem", name="Compact").click()
    fold = page.locator(".folded, .separator.failed", has_text="ompact")
    await expect(fold.first).to_be_visible()
    await console.keep_picture("compaction")


async def test_the_sides_of_a_session_and_the_operations_are_filled(
    up: Stack, console: Console
) -> None:
    session_id = await up.session()
    todos = [{"content": "Look around", "status": "in_progress", "priority": "high"}]
    arguments = json.dumps({"todos": todos})
    await send(up, session_id, f"[[sim: tool=todowrite args='{arguments}' ; answer=done]] go")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".session-head .state")).to_have_text("Idle")
    for tab, words in (
        ("Explain", "It rests"),
        ("Context", "Window:"),
        ("Events", "step.ended"),
        ("Todos", "Look around"),
        ("Usage", "Tokens per turn"),
    ):
        await page.get_by_role("tab", name=tab).click()
        await expect(page.locator(".side-panel")).to_contain_text(words)
    await page.goto(f"{console.address}/ops")
    await expect(page.locator("fl-ops")).to_contain_text("fairlead-ingest")
    await expect(page.locator(".shard")).to_have_count(8)
    await console.keep_picture("operations")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_rules_of_accessibility_hold(up: Stack, browser: Browser, scheme: str) -> None:
    """axe-core with its rules for WCAG A and AA, contrast included."""
    package = await asyncio.to_thread(install_package, "axe-core", "4.10.2")
    script = (package / "node_modules/axe-core/axe.min.js").read_text()
    session_id = await up.session()
    await send(
        up, session_id, 'Hello [[sim: reasoning="hm" answer="# Title\n\n- **one**\n- `two`"]]'
    )
    await up.http.post(f"/api/session/{session_id}/wait")
    found: dict[str, list[str]] = {}
    # The rules are a script of their own, which the policy of the page would refuse.
    async with open_console(up, browser, color_scheme=scheme, bypass_csp=True) as console:
        await console.sign_in()
        for path in ("/", f"/s/{session_id}", "/asks", "/ops"):
            await console.page.goto(console.address + path)
            await asyncio.sleep(1.5)
            await console.page.evaluate(script)
            result = await console.page.evaluate(
                "() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })"
            )
            found[path] = [
                f"{rule['id']}: {rule['nodes'][0]['html'][:160]} {rule['nodes'][0].get('failureSummary', '')[:200]}"
                for rule in result["violations"]
            ]
            if path.startswith("/s/"):
                await console.keep_picture(f"session-{scheme}")

    assert [rule for rules in found.values() for rule in rules] == []
