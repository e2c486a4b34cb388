"""An answer on the page: running text, each part on lines of its own."""

import io

from rich.console import Console

from fairlead_cli.answer import Piece
from fairlead_cli.commands.prompt import Page


def shown(*pieces: Piece) -> str:
    out = io.StringIO()
    console = Console(file=out, highlight=False, width=40)
    page = Page(console, console)
    for piece in pieces:
        page.show(piece)
    return out.getvalue()


def test_fragments_run_together() -> None:
    assert shown(Piece("text", "Hel"), Piece("text", "lo"), Piece("note", "")) == "Hello\n"


def test_reasoning_and_text_do_not_share_a_line() -> None:
    assert shown(Piece("reasoning", "Hm."), Piece("text", "Yes.")) == "Hm.\nYes."


def test_remarks_stand_between() -> None:
    page = shown(Piece("text", "a"), Piece("note", "bash ls"), Piece("text", "b"))

    assert page == "a\n· bash ls\nb"


def test_what_a_model_says_is_not_markup() -> None:
    assert shown(Piece("text", "[bold]x[/bold]")) == "[bold]x[/bold]"
