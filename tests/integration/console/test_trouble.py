"""The console when things go wrong: it says what happened, loses nothing and goes on where it can."""

import asyncio
import json
from typing import Any

import orjson
import pytest
from playwright.async_api import Browser, Route, expect

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema import subjects
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console, open_console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]
ASK = json.dumps({"command": "echo ask"})
HOURS_MS = 3 * 3600 * 1000


async def start(up: Stack, prompt: str, *, title: str = "A session") -> str:
    session_id = await up.session()
    (await up.http.patch(f"/api/session/{session_id}", json={"title": title})).raise_for_status()
    await send(up, session_id, prompt)
    return session_id


async def send(up: Stack, session_id: str, prompt: str) -> None:
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()


async def test_a_cursor_that_does_not_count_any_more_starts_the_page_anew(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, "Go [[sim: answer='The first answer']]")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".assistant")).to_contain_text("The first answer")

    await page.evaluate(
        """() => {
          const { store } = document.querySelector("fl-session");
          store.log = "a-log-before-the-restore";
          store.client.controller.abort();
        }"""
    )
    await send(up, session_id, "And [[sim: answer='The second answer']]")

    await expect(page.locator(".assistant").last).to_contain_text("The second answer")
    await expect(page.locator(".assistant")).to_have_count(2)
    await expect(page.locator(".banner")).to_be_hidden()


async def test_a_session_that_becomes_unreadable_says_so_and_keeps_what_it_has(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, "Go [[sim: answer='Before the damage']]")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".session-head .state")).to_have_text("Idle")
    at = Address(DEFAULT_TENANT, session_id)
    head = await up.eventlog.log.head(at)
    event = {"id": ids.event_id(), "seq": head.seq + 1, "type": "from.the.future"}
    forged = {"id": ids.commit_id(), "events": [{**event, "version": 9, "time": 1, "data": {}}]}

    async with open_link(up.up.operator, name="test") as link:
        await link.store(subjects.log(at), orjson.dumps(forged))

    await expect(page.locator(".banner")).to_contain_text("cannot be read any further")
    await expect(page.locator(".session-head .state")).to_have_text("Broken")
    await expect(page.locator(".assistant")).to_contain_text("Before the damage")
    await expect(page.locator(".composer textarea")).to_be_disabled()
    await console.keep_picture("broken")


async def test_a_session_that_vanishes_leaves_a_page_that_says_so(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, "Go [[sim: answer='Soon gone.']]", title="Vanishes")
    await console.open(session_id)
    page = console.page
    await expect(page.locator(".session-head .state")).to_have_text("Idle")

    answer = await up.http.delete(f"/api/session/{session_id}?purge=true")

    assert answer.is_success
    await expect(page.locator("fl-session .empty")).to_contain_text("This session is gone")
    await expect(page.locator(".composer")).to_be_hidden()
    await console.keep_picture("gone")
    await page.get_by_role("link", name="All sessions").last.click()
    await expect(page.locator("fl-sessions")).to_be_visible()
    await expect(page.locator(".session-row", has_text="Vanishes")).to_have_count(0)


async def test_a_slow_network_shows_what_is_under_way_and_sends_once(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, "Go [[sim: answer=First.]]")
    page = console.page
    cdp = await console.context.new_cdp_session(page)
    await cdp.send("Network.enable")
    speed = {"latency": 600, "downloadThroughput": 60_000, "uploadThroughput": 30_000}
    await cdp.send("Network.emulateNetworkConditions", {"offline": False, **speed})

    await page.goto(f"{console.address}/s/{session_id}")
    await expect(page.locator("fl-session .empty")).to_contain_text("Loading")
    await expect(page.locator(".assistant")).to_contain_text("First.")
    await page.fill(".composer textarea", "Once [[sim: answer=Second.]]")
    await page.press(".composer textarea", "Enter")
    await expect(page.locator(".composer .primary.pending")).to_be_visible()
    await page.press(".composer textarea", "Enter")

    await expect(page.locator(".assistant").last).to_contain_text("Second.")
    await expect(page.locator(".user")).to_have_count(2)
    await expect(page.locator(".pending-input")).to_have_count(0)


async def test_a_lost_network_comes_back_without_a_reload(up: Stack, console: Console) -> None:
    session_id = await start(up, "Go [[sim: answer=First.]]")
    await console.open(session_id)
    page = console.page
    await console.context.set_offline(True)
    await page.evaluate(
        "() => document.querySelector('fl-session').store.client.controller.abort()"
    )
    await expect(page.locator(".banner")).to_contain_text("Connection lost")
    await page.fill(".composer textarea", "While away [[sim: answer=Second.]]")
    await page.press(".composer textarea", "Enter")
    await expect(page.locator(".toast.error")).to_contain_text("cannot be reached")
    await console.context.set_offline(False)

    await page.press(".composer textarea", "Enter")

    await expect(page.locator(".assistant").last).to_contain_text("Second.")
    await expect(page.locator(".banner")).to_be_hidden()


@pytest.mark.parametrize("wrong_ms", [HOURS_MS, -HOURS_MS])
async def test_a_wrong_clock_of_the_computer_shows_the_times_of_the_server(
    up: Stack,
    browser: Browser,
    signed_in: Any,  # noqa: ANN401
    wrong_ms: int,
) -> None:
    session_id = await start(up, "Go [[sim: answer=Done.]]", title="Just now")
    async with open_console(up, browser, storage_state=signed_in) as console:
        page = console.page
        await page.add_init_script(
            f"const right = Date.now; Date.now = () => right() + {wrong_ms};"
        )
        await page.goto(console.address)
        words = "ahead" if wrong_ms > 0 else "behind"
        await expect(page.locator(".toast")).to_contain_text(words)
        row = page.locator(".session-row", has_text="Just now").first
        await expect(row.locator("time")).to_have_text("now")
        await console.open(session_id)
        await console.write("Again [[sim: answer=Twice.]]")
        await expect(page.locator(".assistant").last).to_contain_text("Twice.")
        assert await page.locator(".user").count() == 2


async def test_who_answers_second_is_told_that_somebody_was_first(
    up: Stack, console: Console
) -> None:
    session_id = await start(up, f"Go [[sim: tool=bash args='{ASK}' ; answer=done]]")
    await console.open(session_id)
    page = console.page

    async def answer_first(route: Route) -> None:
        path = route.request.url.removeprefix(console.address)
        (await up.http.post(path, json={"reply": "once"})).raise_for_status()
        await route.continue_()

    await page.route("**/permission/*/reply", answer_first)
    await page.get_by_role("button", name="Reject", exact=True).click()

    await expect(page.locator(".toast")).to_contain_text("Somebody else answered first")
    await expect(page.locator(".ask")).to_have_count(0)
    await expect(page.locator(".separator.approved")).to_contain_text("Approved once")
    types = [event.event.type for event in await up.events(session_id)]
    assert types.count("permission.replied") == 1


async def test_an_ask_that_comes_later_does_not_take_the_place_of_the_chosen_one(
    up: Stack, console: Console
) -> None:
    page = console.page
    first = await start(up, f"Go [[sim: tool=bash args='{ASK}' ; answer=done]]", title="Chosen")
    await page.goto(f"{console.address}/asks")
    await expect(page.locator(".ask.chosen")).to_contain_text("Chosen")
    second = await start(up, f"Go [[sim: tool=bash args='{ASK}' ; answer=done]]", title="Later")
    await expect(page.locator(".ask").first).to_contain_text("Later")

    await expect(page.locator(".ask.chosen")).to_contain_text("Chosen")
    await page.keyboard.press("a")

    await up.until(first, "permission.replied")
    types = [event.event.type for event in await up.events(second)]
    assert "permission.replied" not in types
    # Enter is of the button that has the focus, not of the page.
    await (
        page.locator(".ask", has_text="Later")
        .get_by_role("button", name="Reject", exact=True)
        .focus()
    )
    await page.keyboard.press("Enter")
    await expect(page.locator(".ask")).to_have_count(0)
    assert page.url.endswith("/asks")
    await expect(page.locator("fl-asks .empty")).to_contain_text("Nothing waits for you")
    await asyncio.gather(up.wait_until_rested(first), up.wait_until_rested(second))


async def test_an_inbox_that_cannot_be_read_says_so_and_is_read_again(console: Console) -> None:
    page = console.page
    refused = 0

    async def refuse(route: Route) -> None:
        nonlocal refused
        refused += 1
        body = {"_tag": "ServiceUnavailableError", "message": "The read models do not answer"}
        await route.fulfill(status=503, json=body)

    await page.route("**/api/ask", refuse)
    await page.goto(f"{console.address}/asks")
    await expect(page.locator("fl-asks")).to_contain_text("The read models do not answer")
    assert refused

    await page.unroute("**/api/ask")

    await expect(page.locator("fl-asks .empty")).to_contain_text("Nothing waits for you")
    await expect(page.locator("fl-asks")).not_to_contain_text("do not answer")


async def test_what_was_being_written_is_there_again_after_a_new_sign_in(
    up: Stack, console: Console
) -> None:
    session_id = await up.session()
    await console.open(session_id)
    page = console.page
    await page.fill(".composer textarea", "Half a thought")
    await console.context.clear_cookies()
    await page.press(".composer textarea", "Enter")
    await page.wait_for_url("**/login?next=*")

    await page.fill("input[type=password]", up.up.token or "")
    await page.click("button[type=submit]")

    await page.wait_for_url(f"**/s/{session_id}")
    await expect(page.locator(".composer textarea")).to_have_value("Half a thought")
    assert [e.event.type for e in await up.events(session_id)].count("prompt.admitted") == 0
