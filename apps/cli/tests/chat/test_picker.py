"""The list of sessions: it finds what a person types, here and on the server, and obeys no title."""

from collections.abc import Sequence

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import OptionList

from fairlead_cli.chat.screen.picker import Picker, PickerItem

NEWEST = [
    PickerItem(f"ses_{number}", f"Work {number}", "18 Nov  $0  /home") for number in range(200)
]
OLD = PickerItem("ses_old", "Mend the harbour", "2 Jan  $1  /home")


async def find(text: str) -> Sequence[PickerItem]:
    return [OLD] if text in OLD.label else []


class PickerApp(App[str | None]):
    """Shows a picker, and ends with what was chosen."""

    def __init__(self, items: Sequence[PickerItem]) -> None:
        super().__init__()
        self._items = items

    async def on_mount(self) -> None:
        await self.push_screen(Picker("Sessions", self._items, find), self.exit)


def shown(app: PickerApp) -> list[str]:
    return [str(option.prompt) for option in app.screen.query_one(OptionList).options]


async def type_text(pilot: Pilot[str | None], text: str) -> None:
    await pilot.press(*("space" if letter == " " else letter for letter in text))


async def test_a_session_that_is_not_among_the_newest_is_found_by_its_title() -> None:
    app = PickerApp(NEWEST)
    async with app.run_test() as pilot:
        await type_text(pilot, "harbour")
        while not shown(app)[0].startswith("Mend"):
            await pilot.pause(0.05)
        await pilot.press("enter")

    assert app.return_value == "ses_old"


async def test_words_that_nothing_has_are_said_so_and_choose_nothing() -> None:
    app = PickerApp(NEWEST)
    async with app.run_test() as pilot:
        await type_text(pilot, "zebra")
        await pilot.press("down", "enter")

        assert shown(app) == ["Nothing has these words."]
        assert app.is_running


async def test_the_keys_for_pages_move_in_the_list_while_a_person_types() -> None:
    app = PickerApp(NEWEST)
    async with app.run_test(size=(80, 24)) as pilot:
        await type_text(pilot, "work")
        await pilot.press("pagedown", "pagedown", "up")
        highlighted = app.screen.query_one(OptionList).highlighted

        assert highlighted is not None
        assert highlighted > 10


async def test_a_title_does_not_command_the_terminal() -> None:
    evil = PickerItem("ses_a", "\x1b]0;pwned\x07red", "\x1b[31m/home")
    app = PickerApp([evil])
    async with app.run_test() as pilot:
        await pilot.pause()

        assert "".join(shown(app)).split() == ["red", "/home"]
