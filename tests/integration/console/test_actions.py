"""What a person does with a session beside writing: search, keys, the menu, the pickers, the side."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from fairlead_testing.console_browser import WITHOUT_CHROMIUM, Console
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
    WITHOUT_CHROMIUM,
]
MORE = """
[gateway]
metrics_url = "https://metrics.example/fairlead?a=1&b=<2>"

[asks]
expire_s = 12
"""
LONG = " ".join(f"word{number}" for number in range(400))


async def start(up: Stack, prompt: str, *, title: str = "A session") -> str:
    session_id = await up.session()
    (await up.http.patch(f"/api/session/{session_id}", json={"title": title})).raise_for_status()
    body = {"prompt": {"text": prompt}}
    (await up.http.post(f"/api/session/{session_id}/prompt", json=body)).raise_for_status()
    return session_id


async def start_rested(up: Stack, prompt: str, *, title: str = "A session") -> str:
    session_id = await start(up, prompt, title=title)
    await up.wait_until_rested(session_id)
    return session_id


async def choose_action(console: Console, name: str) -> None:
    await console.page.get_by_label("More").click()
    await console.page.get_by_role("menuitem", name=name).click()


async def test_the_keys_search_the_list_and_move_down_and_up(up: Stack, console: Console) -> None:
    for name in ("pear one", "pear two", "pear three", "apple"):
        await start_rested(up, "Go [[sim: answer=ok]]", title=name)
    page = console.page
    await page.goto(console.address)
    await page.wait_for_selector(".session-row")
    await page.keyboard.press("/")
    await expect(page.locator(".search")).to_be_focused()
    await page.keyboard.type("pear")
    await expect(page.locator(".session-row")).to_have_count(3)
    titles = await page.locator(".session-row .title").all_inner_texts()
    chosen = page.locator(".session-row.chosen .title")

    await page.keyboard.press("Enter")
    await expect(chosen).to_have_text(titles[0])
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(chosen).to_have_text(titles[2])
    await page.keyboard.press("k")
    await expect(chosen).to_have_text(titles[1])
    await console.keep_picture("keys")
    await page.keyboard.press("Enter")

    await expect(page.locator(".session-title")).to_contain_text(titles[1])


async def test_the_keys_scroll_a_session_and_search_from_it(up: Stack, console: Console) -> None:
    paragraphs = "\n\n".join([LONG] * 6)
    session_id = await start_rested(up, f"Go [[sim: answer='{paragraphs}']]")
    await console.open(session_id)
    page = console.page
    top = "() => document.querySelector('fl-session').list.element.scrollTop"
    await expect(page.locator(".assistant .text")).to_contain_text("word399")
    await page.keyboard.press("Escape")
    end = await page.evaluate(top)
    assert end > 0
    await page.keyboard.press("k")
    await page.wait_for_function(f"(end) => ({top})() < end", arg=end)
    up_there = await page.evaluate(top)
    await page.keyboard.press("j")
    await page.wait_for_function(f"(there) => ({top})() > there", arg=up_there)

    await page.keyboard.press("/")

    await expect(page.locator("dialog.palette, .palette-entry").first).to_be_visible()


async def test_a_session_moves_and_is_exported_from_its_menu(
    up: Stack, console: Console, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in (elsewhere, *elsewhere.parents[:3]):
        folder.chmod(0o755)
    session_id = await start_rested(up, "Go [[sim: answer=Here.]]", title="To be moved")
    await console.open(session_id)
    page = console.page
    await choose_action(console, "Move to another directory")
    await page.fill("dialog input", "not/absolute")
    await page.click("dialog button[type=submit]")
    await expect(page.locator(".toast.error")).to_be_visible()

    await choose_action(console, "Move to another directory")
    await page.fill("dialog input", str(elsewhere))
    await page.click("dialog button[type=submit]")
    await expect(page.locator(".facts-line bdi")).to_have_attribute("title", str(elsewhere))

    async with page.expect_download() as coming:
        await choose_action(console, "Export")
    download = await coming.value
    exported = await asyncio.to_thread(Path(await download.path()).read_text)
    assert download.suggested_filename.endswith(".fairlead.jsonl")
    assert session_id in exported
    assert "Here." in exported
    await console.keep_picture("moved")


async def test_a_session_is_deleted_for_ever_only_by_the_typed_word(
    up: Stack, console: Console
) -> None:
    session_id = await start_rested(up, "Go [[sim: answer=Gone.]]", title="To be deleted")
    await console.open(session_id)
    page = console.page
    await choose_action(console, "Delete for ever")
    sure = page.locator("dialog .danger")
    await expect(sure).to_be_disabled()
    await page.fill("dialog input", "delet")
    await expect(sure).to_be_disabled()
    await console.keep_picture("delete")
    await page.get_by_role("button", name="Cancel").click()
    assert (await up.http.get(f"/api/session/{session_id}")).status_code == 200

    await choose_action(console, "Delete for ever")
    await page.fill("dialog input", "delete")
    await sure.click()

    await page.wait_for_selector("fl-sessions")
    await expect(page.locator(".session-row", has_text="To be deleted")).to_have_count(0)
    assert (await up.http.get(f"/api/session/{session_id}")).status_code in {404, 410}


async def test_the_pickers_change_agent_and_model_and_go_back_if_it_failed(
    up: Stack, console: Console
) -> None:
    session_id = await start_rested(up, "Go [[sim: answer=First.]]")
    await console.open(session_id)
    page = console.page
    agent, model = page.locator(".pickers").get_by_label("Agent"), page.get_by_label("Model")
    await expect(model).to_be_enabled()
    before = await model.input_value()
    other = await model.evaluate(
        "(e) => [...e.options].map((o) => o.value).find((v) => v && v !== e.value)"
    )
    await page.route(
        "**/model",
        lambda route: route.abort() if route.request.method == "POST" else route.continue_(),
    )
    await model.select_option(other)
    await expect(page.locator(".toast.error")).to_be_visible()
    await expect(model).to_have_value(before)
    await page.unroute("**/model")

    await model.select_option(other)
    await expect(page.locator(".separator", has_text=other.partition("/")[2]).first).to_be_visible()
    await expect(model).to_have_value(other)
    await agent.select_option("plan")
    await expect(page.locator(".separator", has_text="plan").first).to_be_visible()
    await expect(agent).to_have_value("plan")
    await console.keep_picture("pickers")

    info = (await up.http.get(f"/api/session/{session_id}")).json()["data"]
    assert info["agent"] == "plan"
    assert f"{info['model']['providerID']}/{info['model']['id']}" == other


async def test_an_ask_says_when_it_expires_and_goes_by_itself(up: Stack, console: Console) -> None:
    command = json.dumps({"command": "echo ask me"})
    session_id = await start(
        up, f"Go [[sim: tool=bash args='{command}' ; answer=ok]]", title="Late"
    )
    page = console.page
    await page.goto(f"{console.address}/asks")
    card = page.locator(".asks > *", has_text="Late")
    await expect(card.locator(".expiry")).to_contain_text("expires in")
    await console.keep_picture("expiry")

    await expect(page.locator("fl-asks .empty")).to_be_visible()
    await console.open(session_id)
    await expect(page.locator(".ask")).to_have_count(0)
    await expect(page.locator(".transcript-place")).to_contain_text("not answered in time")


async def test_the_context_and_who_runs_a_session_stand_beside_it(
    up: Stack, console: Console
) -> None:
    session_id = await start_rested(up, "Go [[sim: answer=First.]]")
    await console.open(session_id)
    page = console.page
    panel = page.locator(".side-panel")
    await page.get_by_role("tab", name="Context").click()
    await expect(panel.get_by_role("meter")).to_have_attribute(
        "aria-label", re.compile("^Window: ")
    )
    part = panel.locator("details.part").first
    await part.locator("summary").click()
    await expect(part.locator("pre")).not_to_be_empty()
    await console.keep_picture("context")

    await console.write(f"Go [[sim: answer='{LONG}' chunks=400 delay_ms=30]]")
    await page.get_by_role("tab", name="Explain").click()
    await expect(panel).to_contain_text("Generation")
    owner = (
        await panel.locator("dt", has_text="Owner")
        .locator("xpath=following-sibling::dd[1]")
        .inner_text()
    )
    generation = panel.locator("dt", has_text="Generation").locator(
        "xpath=following-sibling::dd[1]"
    )
    assert int(await generation.inner_text()) >= 1
    await console.keep_picture("explain")

    await page.goto(f"{console.address}/ops")
    services = page.locator("fl-ops section", has_text="Services").first
    row = services.locator("tr", has_text=owner)
    await expect(row).to_contain_text("fairlead-runner")
    await expect(services).to_contain_text("fairlead-gateway")
    link = page.locator("fl-ops a[target=_blank]")
    await expect(link).to_have_text("https://metrics.example/fairlead?a=1&b=<2>")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await console.keep_picture("operations")
