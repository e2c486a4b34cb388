"""The list of sessions: it misses nothing that happened while it was away, and keeps what a person does in it."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]


async def titled(up: Stack, title: str) -> str:
    session_id = await up.session()
    (await up.http.patch(f"/api/session/{session_id}", json={"title": title})).raise_for_status()
    return session_id


async def open_list(console: Console) -> Page:
    await console.page.goto(console.address)
    await console.page.wait_for_selector(".session-row")
    await expect(console.page.locator("#connection")).to_contain_text("Live")
    return console.page


async def test_a_session_that_was_made_while_the_page_was_away_stands_in_the_list(
    up: Stack, console: Console
) -> None:
    for title in ("There before", "There too"):
        await titled(up, title)
    page = await open_list(console)
    # The person scrolled: the next page begins after the first session.
    cursor = (await up.http.get("/api/session/overview?limit=1")).json()["cursor"]["next"]
    await page.evaluate("(at) => { document.querySelector('fl-sessions').cursor = at; }", cursor)
    await console.context.set_offline(True)
    await page.evaluate(
        "() => document.querySelector('fl-sessions').app.live.stream.controller.abort()"
    )
    await expect(page.locator("#connection")).to_contain_text("Connecting")
    await titled(up, "Made while away")

    await console.context.set_offline(False)

    await expect(page.locator(".session-row", has_text="Made while away")).to_be_visible()


async def test_a_row_that_changes_keeps_the_focus_and_its_place_on_the_screen(
    up: Stack, console: Console
) -> None:
    session_id = await titled(up, "Before the change")
    page = await open_list(console)
    row = page.locator(f'.session-row[href="/s/{session_id}"]')
    await row.focus()

    await up.http.patch(f"/api/session/{session_id}", json={"title": "After the change"})

    await expect(row).to_contain_text("After the change")
    await expect(row).to_be_focused()


async def test_a_state_is_found_far_behind_what_the_list_has_read(
    up: Stack, console: Console
) -> None:
    """The list reads 200 sessions at a time, and only as far as somebody scrolls."""
    failed = await titled(up, "Failed long ago")
    body = {"prompt": {"text": "Go [[sim: status=400 error=No]]"}}
    (await up.http.post(f"/api/session/{failed}/prompt", json=body)).raise_for_status()
    await up.wait_until_rested(failed)
    for _ in range(3):
        await asyncio.gather(*(up.session() for _ in range(70)))
    page = await open_list(console)

    await page.get_by_role("button", name="Failed").click()

    await expect(page.locator(".session-row", has_text="Failed long ago")).to_be_visible()
    await page.get_by_role("button", name="Archived").click()
    await expect(page.locator(".empty")).to_contain_text("The archive is empty")
