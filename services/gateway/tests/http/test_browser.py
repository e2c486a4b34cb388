"""A real browser with a page of another origin: the page changes nothing and reads nothing (B1)."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from playwright.async_api import Browser, async_playwright
from starlette.applications import Starlette

from fairlead_testing.web_server import Site, reply, site
from services.gateway.tests.conftest import Append, FakeIngest, Project

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
GUARD_S = 200

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

# Each attack ends in the text "blocked", or in what the page could read.
ATTACK = """
async (target) => {
  const read = (url, options) =>
    fetch(url, options).then(async (r) => r.type === "opaque" ? "blocked" : "read " + await r.text())
      .catch(() => "blocked");
  const json = { "content-type": "application/json" };
  const load = (tag, attribute, url) => new Promise((resolve) => {
    const element = document.createElement(tag);
    element.onload = () => resolve("loaded");
    element.onerror = () => resolve("blocked");
    element[attribute] = url;
    document.body.append(element);
  });
  const submit = (enctype) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.name = "frame" + Math.random();
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: target + "/api/session", target: frame.name });
    form.enctype = enctype;
    const field = document.createElement("input");
    Object.assign(field, { name: '{"a":"', value: '"}' });
    form.append(field);
    document.body.append(frame, form);
    form.submit();
    frame.onload = () => {
      try { resolve("read " + frame.contentDocument.body.innerText); }
      catch { resolve("blocked"); }
    };
  });
  const listen = () => new Promise((resolve) => {
    const source = new EventSource(target + "/api/session/ses_1/event");
    source.onmessage = (event) => resolve("read " + event.data);
    source.onerror = () => { source.close(); resolve("blocked"); };
  });
  const post = { method: "POST", body: "{}" };
  return {
    get: await read(target + "/api/session"),
    getNoCors: await read(target + "/api/session", { mode: "no-cors" }),
    health: await read(target + "/api/health"),
    postJson: await read(target + "/api/session", { ...post, headers: json }),
    postText: await read(target + "/api/session", { ...post, mode: "no-cors" }),
    postForm: await read(target + "/api/session",
      { method: "POST", mode: "no-cors", body: new URLSearchParams({ a: "b" }) }),
    interrupt: await read(target + "/api/session/ses_1/interrupt",
      { method: "POST", mode: "no-cors" }),
    remove: await read(target + "/api/session/ses_1", { method: "DELETE" }),
    formText: await submit("text/plain"),
    formUrl: await submit("application/x-www-form-urlencoded"),
    beacon: navigator.sendBeacon(target + "/api/session/ses_1/resume", "{}") && "blocked",
    events: await listen(),
    image: await load("img", "src", target + "/api/session"),
    script: await load("script", "src", target + "/openapi.json"),
  };
}
"""


@asynccontextmanager
async def _serve(app: Starlette) -> AsyncIterator[int]:
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        # The name of the attacker leads to this machine, as after DNS rebinding.
        rules = "MAP evil.example 127.0.0.1"
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={rules}"],
        )
        try:
            yield browser
        finally:
            await browser.close()


async def _attack(browser: Browser, page_url: str, target: str) -> dict[str, Any]:
    page = await browser.new_page()
    await page.goto(page_url)
    results: dict[str, Any] = await page.evaluate(ATTACK, target)
    await page.close()
    return results


def _attacks(pages: Site, port: int) -> list[tuple[str, str]]:
    """The page of the attacker and the address that it attacks: same site, cross site, rebound."""
    hosts = [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("evil.example",) * 2]
    return [(f"http://{page}:{pages.port}/", f"http://{host}:{port}") for page, host in hosts]


async def test_a_page_of_another_origin_changes_nothing_and_reads_nothing(
    app: Starlette, ingest: FakeIngest, append: Append, project: Project
) -> None:
    """B1: fetch, forms, beacons, event streams, images and scripts against an open gateway."""
    await append("ses_1")
    project("ses_1")
    ingest.serve("session.create", {"data": {"id": "ses_2"}})
    for verb in ("interrupt", "resume", "archive"):
        ingest.serve(f"session.{verb}", {"data": {"sessionID": "ses_1", "seq": 1}})

    async with (
        asyncio.timeout(GUARD_S),
        site() as pages,
        _serve(app) as port,
        _browser() as browser,
    ):
        pages.pages["/"] = reply(b"<!doctype html><body>attack</body>")
        found = {
            f"{page} -> {target}": await _attack(browser, page, target)
            for page, target in _attacks(pages, port)
        }
        rebound = await browser.new_page()
        answer = await rebound.goto(f"http://evil.example:{port}/api/session")
        own = await browser.new_page()
        own_answer = await own.goto(f"http://127.0.0.1:{port}/api/session")
        own_read = await own.evaluate("() => fetch('/api/session').then((r) => r.status)")

    wrong = {
        where: {name: result for name, result in results.items() if result != "blocked"}
        for where, results in found.items()
    }
    assert {where: results for where, results in wrong.items() if results} == {}, json.dumps(wrong)
    assert ingest.commands == []
    assert answer is not None
    assert answer.status == 403
    assert own_answer is not None
    assert (own_answer.status, own_read) == (200, 200), "the rules let our own pages through"
