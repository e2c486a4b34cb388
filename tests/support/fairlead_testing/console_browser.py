"""A real browser on the console of a real stack."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from fairlead_testing.stack import Stack

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
WITHOUT_CHROMIUM: Final = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
)
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS: Final = 30_000
"""How long a page may take before a test gives up."""
ARTEFACTS: Final = Path(os.environ.get("FAIRLEAD_ARTEFACTS", gettempdir())) / "fairlead-console"
expect.set_options(timeout=PATIENCE_MS)


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """A browser without a window for the length of a block."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Console:
    """The console in one browser, as one person has it open."""

    stack: Stack
    context: BrowserContext
    page: Page
    problems: list[str] = field(default_factory=list)
    """What the page complained about: exceptions, and what its own policy refused."""

    @property
    def address(self) -> str:
        return self.stack.up.http

    async def sign_in(self, key: str | None = None) -> None:
        """Sign in with a key through the form, and wait for the list."""
        await self.page.goto(f"{self.address}/login")
        await self.page.fill("input[type=password]", key or self.stack.up.token or "")
        await self.page.click("button[type=submit]")
        await self.page.wait_for_selector("fl-sessions")

    async def open(self, session_id: str) -> None:
        """Open a session, and wait until its stream has caught up."""
        await self.page.goto(f"{self.address}/s/{session_id}")
        await self.page.wait_for_selector("fl-session")
        await self.page.wait_for_function(
            "() => document.querySelector('fl-session').store.ready", timeout=PATIENCE_MS
        )

    async def write(self, text: str) -> None:
        """Write into the composer and send."""
        await self.page.fill(".composer textarea", text)
        await self.page.press(".composer textarea", "Enter")

    async def keep_picture(self, name: str) -> None:
        """A screenshot that a person looks at later."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=ARTEFACTS / f"{name}.png")

    async def transcript(self) -> str:
        return await self.page.inner_text(".transcript-place .inner")


@asynccontextmanager
async def open_console(
    stack: Stack,
    browser: Browser,
    **options: Any,  # noqa: ANN401 - of a browser context
) -> AsyncIterator[Console]:
    """One person's browser. Nothing may go wrong in the page until the block ends."""
    context = await browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    console = Console(stack, context, page)
    page.on("pageerror", lambda error: console.problems.append(str(error)))
    page.on("console", lambda message: _note(console, message.type, message.text))
    try:
        yield console
        assert console.problems == []
    finally:
        # A page with open streams closes faster without them.
        await asyncio.wait_for(context.close(), 20)


def _note(console: Console, kind: str, text: str) -> None:
    # A killed gateway and a refused request are no problem of the page.
    if kind == "error" and "Failed to load resource" not in text and "net::ERR" not in text:
        console.problems.append(text)
