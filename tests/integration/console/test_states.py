"""Every state of a session has its look in the console, and a way out that a person can take."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.cold.trees import restore_tree, store_tree
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]
MORE = "[projector]\nfeed_lag_s = 0\n"
LONG = " ".join(f"word{number}" for number in range(200))


async def start(up: Stack, prompt: str, *, title: str = "A session") -> str:
    session_id = await up.session()
    (await up.http.patch(f"/api/session/{session_id}", json={"title": title})).raise_for_status()
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()
    return session_id


@pytest.mark.parametrize(
    ("script", "state", "notice"),
    [
        ("status=400 error='The model refuses'", "Failed", "The last turn failed"),
        ("status=529 error=Overloaded retry_after=900", "Retry in", "The next attempt is in"),
    ],
)
async def test_a_turn_that_did_not_work_says_so_and_can_be_tried_again(
    up: Stack, console: Console, script: str, state: str, notice: str
) -> None:
    session_id = await start(up, f"Go [[sim: {script} times=1 ; answer=Worked.]]")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".session-head .state")).to_contain_text(state)
    await expect(page.locator(".notice")).to_contain_text(notice)
    await console.keep_picture(f"state-{state.partition(' ')[0].lower()}")

    await page.locator(".notice button").click()

    await expect(page.locator(".separator.info", has_text="Resumed")).to_be_visible()


async def test_an_interrupt_is_confirmed_by_keyboard_and_ends_with_a_resume(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, f"Go [[sim: answer='{LONG}' chunks=200 delay_ms=40]]")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".prose.live")).to_contain_text("word3")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_contain_text("Interrupt the agent?")
    await page.locator("dialog .danger").click()
    await expect(page.locator(".session-head .state")).to_have_text("Interrupted")
    await expect(page.locator(".notice")).to_contain_text("Interrupted")

    await page.keyboard.press("r")

    await expect(page.locator(".separator.info", has_text="Resumed")).to_be_visible()
    await expect(page.locator(".notice")).to_be_hidden()


async def test_a_used_up_budget_is_raised_where_it_is_told(up: Stack, console: Console) -> None:
    session_id = await start(up, "Go [[sim: answer=First.]]")
    await up.wait_until_rested(session_id)
    await up.http.post(f"/api/session/{session_id}/budget", json={"cost": 0.000001})
    body = {"prompt": {"text": "Go on [[sim: answer=Second.]]"}}
    await up.http.post(f"/api/session/{session_id}/prompt", json=body)
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".session-head .state")).to_have_text("Over budget")
    await page.locator(".notice button").click()
    await page.fill("dialog input", "5")
    await page.click("dialog button[type=submit]")

    await expect(page.locator(".assistant").last).to_contain_text("Second.")
    await expect(page.locator(".notice")).to_be_hidden()


async def test_an_archived_session_is_found_and_taken_out_again(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, "Go [[sim: answer=Kept.]]", title="For the archive")
    await up.wait_until_rested(session_id)
    await console.open(session_id)
    page = console.page
    await page.get_by_label("More").click()
    await page.get_by_role("menuitem", name="Archive", exact=True).click()
    await expect(page.locator(".notice")).to_contain_text("archived")
    await expect(page.locator(".composer textarea")).to_be_disabled()
    await page.click(".back")
    await expect(page.locator(".session-row", has_text="For the archive")).to_have_count(0)
    await page.get_by_role("button", name="Archived").click()
    await page.locator(".session-row", has_text="For the archive").click()
    await console.keep_picture("archived")

    await page.get_by_role("button", name="Take out of the archive").click()

    await expect(page.locator(".composer textarea")).to_be_enabled()
    await expect(page.locator(".notice")).to_be_hidden()
    # The list is as it was left.
    await page.click(".back")
    await expect(page.locator(".chip[aria-pressed=true]").first).to_have_text("Archived")


async def test_a_stored_session_keeps_its_messages_and_names_its_file(
    up: Stack, console: Console, tmp_path: Path
) -> None:
    """ADR 0084: a page that is open learns it too, and after a restore the session goes on."""
    session_id = await start(up, "Go [[sim: answer=Kept.]]", title="For the cold")
    await up.wait_until_rested(session_id)
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".assistant")).to_contain_text("Kept.")
    connection = AsyncHttpConnection(up.up.http, up.up.token, patience_s=5.0)
    cold = SessionRequests(connection, wait_s=30)

    (moved,) = await store_tree(cold, session_id, tmp_path)

    await expect(page.locator(".notice")).to_contain_text(moved.file.path.name)
    await expect(page.locator(".assistant")).to_contain_text("Kept.")
    await console.keep_picture("stored")
    await expect(page.locator(".composer textarea")).to_be_disabled()
    await page.click(".back")
    row = page.locator(".session-row", has_text="For the cold")
    await expect(row).to_contain_text("Stored")
    await restore_tree(cold, session_id, tmp_path)
    await connection.aclose()
    await console.open(session_id)
    await expect(page.locator(".assistant")).to_contain_text("Kept.")
    await expect(page.locator(".notice")).to_be_hidden()
