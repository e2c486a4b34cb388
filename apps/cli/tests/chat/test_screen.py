"""The screen without a server: asks that can be seen and answered, texts that are kept, prompts that wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from apps.cli.tests.chat.events import asked, called, event
from fairlead_cli.chat.chat_start import ChatStart, ServerOffer
from fairlead_cli.chat.screen.app import ChatApp
from fairlead_cli.chat.screen.ask_panel import AskPanel
from fairlead_cli.chat.screen.choice_list import ChoiceList
from fairlead_cli.chat.screen.composer import Composer
from fairlead_cli.chat.view.fold import fold
from fairlead_client import AsyncFairlead, ReceivedEvent
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport
from fairlead_schema.ids import SessionId

SCRIPT = "\n".join(f"rm file-{number}" for number in range(60))
Chat = tuple[ChatApp, Pilot[SessionId]]


@asynccontextmanager
async def chat(place: Path, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Chat]:
    connection = AsyncHttpConnection("http://127.0.0.1:9", patience_s=0)
    async with AsyncFairlead(transport=AsyncHttpTransport(connection)) as fairlead:
        app = ChatApp(fairlead, connection, ChatStart(), ServerOffer(), place / "history")
        async with app.run_test(size=size) as pilot:
            yield app, pilot
            app.leave()


async def take(chat: Chat, *events: ReceivedEvent) -> None:
    """Let events happen, and draw them."""
    app, pilot = chat
    for item in events:
        fold(app.link.view, item)
    app.say("Drawn.")
    await pilot.pause(0.2)


def long_ask() -> list[ReceivedEvent]:
    return [*called(input_={"command": SCRIPT}), asked()]


@pytest.mark.parametrize(("size", "lines"), [((80, 24), 4), ((120, 50), 4), ((40, 10), 3)])
async def test_the_choices_are_in_sight_however_long_the_ask_is(
    tmp_path: Path, size: tuple[int, int], lines: int
) -> None:
    async with chat(tmp_path, size) as shown:
        await take(shown, *long_ask())
        choices = shown[0].query_one(ChoiceList)

        assert choices.region.height >= lines
        assert choices.region.bottom <= size[1]


async def test_in_the_smallest_terminal_the_choice_that_is_chosen_is_in_sight(
    tmp_path: Path,
) -> None:
    async with chat(tmp_path, (20, 5)) as shown:
        await take(shown, *long_ask())
        await shown[1].press("down", "down")
        choices = shown[0].query_one(ChoiceList)

        assert choices.region.height == 1
        assert choices.highlighted == 2
        assert choices.scroll_offset.y >= 2


async def test_a_long_ask_scrolls_with_the_keys_for_pages(tmp_path: Path) -> None:
    async with chat(tmp_path) as shown:
        await take(shown, *long_ask())
        panel = shown[0].query_one(AskPanel)

        assert "PgDn shows more" in str(panel.border_title)
        pages = 0
        while panel.scroll_text(1):
            pages += 1
            await shown[1].pause()
        assert pages > 2


async def test_escape_returns_from_ones_own_words_to_the_choices(tmp_path: Path) -> None:
    async with chat(tmp_path) as shown:
        await take(shown, *called(), asked())
        app, pilot = shown
        await pilot.press("4", "n", "o")
        assert isinstance(app.focused, Input)
        await pilot.press("escape")

        assert app.query_one(ChoiceList).has_focus
        assert list(app.link.view.asks) == ["per_1"]


async def test_an_ask_waits_until_a_person_stops_typing_and_keeps_the_text(tmp_path: Path) -> None:
    async with chat(tmp_path) as shown:
        app, pilot = shown
        await pilot.press("a", "b")
        await take(shown, *called(), asked())
        panel, composer = app.query_one(AskPanel), app.query_one(Composer)
        await pilot.press("1")
        assert (panel.display, composer.text) == (False, "ab1")
        while not panel.display:
            await pilot.pause(0.1)

        await pilot.press("ctrl+c")
        assert composer.text == "ab1"


async def test_a_text_that_was_cleared_comes_back_with_the_key_for_earlier_prompts(
    tmp_path: Path,
) -> None:
    async with chat(tmp_path) as (app, pilot):
        await pilot.press("a", "b", "ctrl+c")
        assert app.query_one(Composer).text == ""
        await pilot.press("up")
        assert app.query_one(Composer).text == "ab"


async def test_a_prompt_waits_for_a_server_that_is_away_until_it_is_withdrawn(
    tmp_path: Path,
) -> None:
    async with chat(tmp_path) as (app, pilot):
        await pilot.press("h", "i", "enter")
        await pilot.pause(0.4)
        assert [sent.text for sent in app.link.sending.values()] == ["hi"]
        assert [getattr(entry, "level", "") for entry in app.link.view.entries] == ["info"]
        await pilot.press("ctrl+c")
        assert "not sent yet" in str(app.query_one("#status", Static).render())

        await pilot.press(*"/drop", "enter")
        while app.link.sending:
            await pilot.pause(0.05)
        assert app.query_one(Composer).text == "hi"


async def test_the_count_of_asks_follows_what_is_asked(tmp_path: Path) -> None:
    async with chat(tmp_path) as shown:
        await take(shown, *called(), asked())
        await shown[1].press("down")
        await take(shown, *called("call_2"), asked("per_2", "call_2"))
        app = shown[0]
        assert "(1 of 2)" in str(app.query_one("#ask-text").render())
        assert app.query_one(ChoiceList).highlighted == 1

        await take(shown, event("permission.v2.replied", requestID="per_2", reply="once"))
        assert "of 2" not in str(app.query_one("#ask-text").render())
