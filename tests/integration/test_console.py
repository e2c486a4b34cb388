"""The console in a real Chromium against a real stack: what a person does all day."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from fairlead_service.identity.key_file import add_key
from fairlead_service.identity.keys import mint_key
from fairlead_testing.console_browser import (
    WITHOUT_CHROMIUM,
    Console,
    open_browser,
    open_console,
)
from fairlead_testing.console_javascript import NODE, RECORDINGS, run_javascript_tests
from fairlead_testing.console_recording import record_session
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]

CONFIG = """
[agent.build]
permissions = [
  { action = "bash", resource = "*", effect = "ask" },
  { action = "read", resource = "*", effect = "allow" },
]
"""
RECORDED = {
    "tools": [
        (
            "Fix it [[sim: reasoning='The body subtracts.' answer='I look first.' chunks=6 delay_ms=2"
            """ tool=read args='{"path":"README.md"}' tool=glob args='{"pattern":"*.md"}' ;"""
            """ answer='Now **this**.' tool=read args='{"path":"missing.py"}' ; answer=Done. chunks=4]]"""
        )
    ],
    "words": [
        "Say it [[sim: answer='A few words:\n\n- one\n- two' chunks=20 delay_ms=3]]",
        "And again [[sim: reasoning=hm answer=Again. chunks=3]]",
    ],
    "failure": ["x [[sim: status=400 error='The model refuses the request']]"],
}
WORDS = " ".join(f"word{number}" for number in range(150))


def call(tool: str, **arguments: Any) -> str:  # noqa: ANN401 - JSON
    return f"tool={tool} args='{json.dumps(arguments)}'"


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def signed_in(up: Stack, browser: Browser) -> Any:  # noqa: ANN401 - cookies and storage
    async with open_console(up, browser) as console:
        await console.sign_in()
        return await console.context.storage_state()


@pytest_asyncio.fixture(loop_scope="module")
async def console(up: Stack, browser: Browser, signed_in: Any) -> AsyncIterator[Console]:  # noqa: ANN401
    async with open_console(up, browser, storage_state=signed_in) as console:
        yield console


async def start(up: Stack, prompt: str, *, title: str = "A session") -> str:
    """A session with a title and a first prompt."""
    session_id = await up.session()
    answer = await up.http.patch(f"/api/session/{session_id}", json={"title": title})
    answer.raise_for_status()
    await send(up, session_id, prompt)
    return session_id


async def send(up: Stack, session_id: str, prompt: str, **fields: str) -> None:
    body = {"prompt": {"text": prompt}, **fields}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()


async def test_a_person_signs_in_creates_a_session_and_reads_the_answer(
    up: Stack, browser: Browser
) -> None:
    async with open_console(up, browser) as console:
        page = console.page
        await page.goto(f"{console.address}/s/ses_none")
        await page.fill("input[type=password]", "flk_00_wrong")
        await page.click("button[type=submit]")
        await expect(page.locator(".problem")).to_contain_text("Not signed in")
        await console.sign_in()
        assert page.url == f"{console.address}/"

        await page.keyboard.press("n")
        await page.fill("dialog textarea", 'Say hello [[sim: answer="**Hello** there"]]')
        await page.keyboard.press("Enter")

        await expect(page.locator(".assistant strong")).to_have_text("Hello")
        await expect(page.locator(".session-head .state")).to_have_text("Idle")
        await console.keep_picture("create-and-prompt")
        await page.click(".back")
        row = page.locator(".session-row", has_text="Say hello").first
        await expect(row.locator(".state")).to_have_text("Idle")
        cookies = await console.context.cookies()
        assert [(c["httpOnly"], c["sameSite"]) for c in cookies] == [(True, "Strict")]


async def test_an_answer_goes_on_after_its_gateway_was_killed_without_a_gap_or_a_double(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, f'Go [[sim: answer="{WORDS}" chunks=150 delay_ms=25]]')
    await console.open(session_id)
    await expect(console.page.locator(".prose.live")).to_contain_text("word9")

    await up.restart("gateway", 0, signal.SIGKILL)

    await expect(console.page.locator(".session-head .state")).to_have_text("Idle")
    await expect(console.page.locator(".assistant .text")).to_have_text(WORDS)
    assert await console.page.locator(".assistant", has_text="word77").count() == 1
    await console.keep_picture("gateway-killed")


async def test_pending_input_is_steered_queued_edited_and_cancelled(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, f'Go [[sim: answer="{WORDS}" chunks=150 delay_ms=200]]')
    await console.open(session_id)
    page = console.page
    await page.click(".switch [data-mode=queue]")
    for text in ("first thing", "second thing", "third thing"):
        await console.write(text)
        await expect(page.locator(".pending-input", has_text=text)).to_be_visible()

    first = page.locator(".pending-input", has_text="first thing")
    await first.get_by_label("Edit").click()
    await page.fill("dialog textarea", "another thing")
    await page.click("dialog button[type=submit]")
    await expect(page.locator(".pending-input", has_text="another thing")).to_be_visible()
    await page.locator(".pending-input", has_text="second thing").get_by_label("Cancel").click()
    await expect(page.locator(".pending-input", has_text="second thing")).to_have_count(0)
    await console.keep_picture("pending-input")
    third = page.locator(".pending-input", has_text="third thing")
    await third.get_by_text("Steer now").click()
    await expect(third.locator(".chip")).to_have_text("steer")

    await page.get_by_role("button", name="Interrupt").click()
    await expect(page.locator(".separator.interrupt").first).to_contain_text("Interrupted")
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()


async def test_a_permission_is_answered_in_two_browsers_at_once_and_counts_once(
    up: Stack,
    browser: Browser,
    console: Console,
    signed_in: Any,  # noqa: ANN401
) -> None:
    session_id = await start(
        up, f"Go [[sim: {call('bash', command='echo one')} ; answer=done]]", title="Needs a yes"
    )
    async with open_console(up, browser, storage_state=signed_in) as other:
        await other.page.goto(f"{other.address}/asks")
        card = other.page.locator(".ask", has_text="echo one")
        await expect(card).to_contain_text("Needs a yes")
        await console.open(session_id)
        own = console.page.locator(".ask")
        await expect(own).to_contain_text("Always would allow")
        await console.keep_picture("permission")

        buttons = [
            await place.get_by_role("button", name="Approve once").element_handle()
            for place in (own, card)
        ]
        # Both click, even if the card of one is gone by then.
        await asyncio.gather(*(button.evaluate("button => button.click()") for button in buttons))

        await expect(card).to_have_count(0)
        await expect(own).to_have_count(0)
    await expect(console.page.locator(".separator.approved")).to_contain_text("Approved once")
    await expect(console.page.locator(".tool-state")).to_have_text("done")
    types = [event.event.type for event in await up.events(session_id)]
    assert types.count("permission.replied") == 1


async def test_reject_with_words_and_always_from_the_inbox_by_keyboard(
    up: Stack, console: Console
) -> None:
    page = console.page
    words = await start(
        up, f"Go [[sim: {call('bash', command='rm -rf build')} ; answer=ok]]", title="Rejected one"
    )
    await page.goto(f"{console.address}/asks")
    card = page.locator(".ask", has_text="rm -rf build")
    await card.get_by_text("Reject with words…").click()
    await page.fill("dialog textarea", "Use make clean instead")
    await page.click("dialog button[type=submit]")
    await expect(card).to_have_count(0)
    replied = [e.event for e in await up.until(words, "permission.replied")]
    assert any(getattr(event, "message", None) == "Use make clean instead" for event in replied)

    always = f"Go [[sim: {call('bash', command='echo always')} ; answer=done]]"
    await start(up, always, title="Always one")
    await expect(page.locator(".ask", has_text="echo always")).to_be_visible()
    await console.keep_picture("inbox")
    await page.keyboard.press("A")
    await expect(page.locator(".ask", has_text="echo always")).to_have_count(0)
    again = await start(up, always, title="Always again")
    await up.until(again, "tool.succeeded")


async def test_a_question_is_answered(up: Stack, console: Console) -> None:
    questions = [
        {
            "question": "Which database?",
            "header": "Database",
            "options": [
                {"label": "Postgres", "description": "a server"},
                {"label": "SQLite", "description": "a file"},
            ],
        }
    ]
    session_id = await start(up, f"Go [[sim: {call('question', questions=questions)} ; answer=ok]]")
    await console.open(session_id)
    page = console.page
    await page.locator(".ask .option", has_text="SQLite").click()
    await console.keep_picture("question")
    await page.get_by_role("button", name="Answer").click()

    await expect(page.locator(".ask")).to_have_count(0)
    await expect(page.locator(".separator.approved")).to_contain_text("SQLite")
    await expect(page.locator(".session-head .state")).to_have_text("Idle")


async def test_nothing_hostile_breaks_the_page_or_runs(up: Stack, console: Console) -> None:
    hostile = (
        "<script>document.title='owned'</script><img src=x onerror=alert(1)> "
        "[click](javascript:alert(1)) [bank.example](https://evil.example/) ![p](http://evil.example/p.gif) "
        "**never closed ```never closed"
    )
    title = "<img src=x onerror=alert(1)>\u202edlrow"
    command = "echo safe \u202e; rm -rf /\u200b"
    session_id = await start(
        up,
        f"Go [[sim: answer='{hostile}' {call('bash', command=command)} ; answer=ok]]",
        title=title,
    )
    await console.open(session_id)
    page = console.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await expect(page.locator(".assistant .text")).to_contain_text("<script>")
    links = await page.eval_on_selector_all(
        ".assistant a", "links => links.map((link) => [link.href, link.textContent])"
    )

    assert await page.locator(".ask .command .mark").all_inner_texts() == ["U+202E", "U+200B"]
    assert [href for href, _ in links] == ["https://evil.example/", "http://evil.example/p.gif"]
    assert "evil.example" in links[0][1], "the real target is shown"
    assert await page.locator("main script, main .assistant img").count() == 0
    assert "owned" not in await page.title()
    assert "U+202E" in await page.inner_text(".session-title")
    assert [url for url in asked if not url.startswith(console.address)] == []
    await console.keep_picture("hostile")

    await send(up, session_id, "x" * 400_000 + " [[sim: answer=ok]]")
    await page.get_by_role("button", name="Reject", exact=True).click()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator(".user", has_text="xxxx").first).to_be_visible()
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


async def test_everything_can_be_reached_by_keyboard(up: Stack, console: Console) -> None:
    session_id = await start(
        up,
        f"Go [[sim: {call('bash', command='echo keys')} ; answer=done]]",
        title="Find me by keys",
    )
    page = console.page
    await page.goto(console.address)
    await page.wait_for_selector(".session-row")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("find me by")
    await expect(page.locator(".palette-entry.chosen")).to_contain_text("Find me by keys")
    await page.keyboard.press("Enter")
    await expect(page.locator(".ask")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("a")
    await expect(page.locator(".separator.approved")).to_be_visible()
    await expect(page.locator(".session-head .state")).to_have_text("Idle")
    await page.keyboard.press("?")
    await expect(page.locator("dialog")).to_contain_text("Interrupt")
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.wait_for_selector(".session-row")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("fl-session")
    assert re.search(r"/s/ses_", page.url)
    unnamed = await page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, a[href]')]
          .filter((e) => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.length || e.title))
          .map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert unnamed == [], "every control has a name"
    assert session_id


async def test_a_phone_approves_answers_and_interrupts_with_one_thumb(
    up: Stack,
    browser: Browser,
    signed_in: Any,  # noqa: ANN401
) -> None:
    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    session_id = await start(
        up, f"Go [[sim: answer='{WORDS}' {call('bash', command='echo phone')} ; answer=done]]"
    )
    async with open_console(up, browser, storage_state=signed_in, **phone) as console:
        page = console.page
        await page.goto(console.address)
        await page.wait_for_selector(".session-row")
        assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        await console.keep_picture("phone-list")
        await console.open(session_id)
        button = page.locator(".ask").get_by_role("button", name="Approve once")
        box = await button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 390
        await console.keep_picture("phone-session")
        await button.tap()
        await expect(page.locator(".ask")).to_have_count(0)
        assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.skipif(NODE is None, reason="node is not installed: apt-get install nodejs")
async def test_the_page_folds_what_the_stream_sends_into_what_the_api_shows(
    up: Stack, tmp_path: Path
) -> None:
    """Streams are recorded while sessions work; with FAIRLEAD_RECORD they replace the kept ones."""
    place = RECORDINGS if os.environ.get("FAIRLEAD_RECORD") else tmp_path / "recordings"
    place.mkdir(exist_ok=True)
    for name, (prompt, *queued) in RECORDED.items():
        session_id = await up.session()

        async def work(
            session_id: str = session_id, prompt: str = prompt, queued: list[str] = queued
        ) -> None:
            await send(up, session_id, prompt)
            for text in queued:
                await send(up, session_id, text, delivery="queue")

        recording = await record_session(up.http, session_id, work)
        (place / f"{name}.json").write_text(json.dumps(recording, separators=(",", ":")))

    await asyncio.to_thread(run_javascript_tests, tmp_path, place)


async def test_a_foreign_tenant_sees_nothing_and_an_expired_key_is_asked_to_sign_in(
    up: Stack, browser: Browser
) -> None:
    session_id = await start(up, "hello", title="A secret of the default tenant")
    soon = datetime.now(UTC) + timedelta(seconds=6)
    key, entry = mint_key(["admin"], tenant="other", expires=soon)
    add_key(up.up.state.keys, entry)
    await asyncio.sleep(1.2)
    async with open_console(up, browser) as console:
        await console.sign_in(key)
        page = console.page
        await expect(page.locator(".empty")).to_contain_text("No sessions yet")
        await page.goto(f"{console.address}/s/{session_id}")
        await expect(page.locator("fl-session .empty")).to_contain_text("This session is gone")
        assert "secret" not in await page.inner_text("body")

        await page.wait_for_url("**/login?next=*")
        await console.keep_picture("expired")
