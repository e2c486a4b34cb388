"""The printed answer: running text, each part on lines of its own."""

import io

from rich.console import Console

from fairlead_cli.prompts.answer import AnswerPiece
from fairlead_cli.prompts.answer_printer import AnswerPrinter


def print_pieces(*pieces: AnswerPiece) -> str:
    out = io.StringIO()
    console = Console(file=out, highlight=False, width=40)
    printer = AnswerPrinter(console, console)
    for piece in pieces:
        printer.show(piece)
    return out.getvalue()


def test_fragments_run_together() -> None:
    assert (
        print_pieces(AnswerPiece("text", "Hel"), AnswerPiece("text", "lo"), AnswerPiece("note", ""))
        == "Hello\n"
    )


def test_reasoning_and_text_do_not_share_a_line() -> None:
    assert print_pieces(AnswerPiece("reasoning", "Hm."), AnswerPiece("text", "Yes.")) == "Hm.\nYes."


def test_remarks_stand_between() -> None:
    page = print_pieces(
        AnswerPiece("text", "a"), AnswerPiece("note", "bash ls"), AnswerPiece("text", "b")
    )

    assert page == "a\n· bash ls\nb"


def test_what_a_model_says_is_not_markup() -> None:
    assert print_pieces(AnswerPiece("text", "[bold]x[/bold]")) == "[bold]x[/bold]"


def test_an_answer_that_stops_in_the_middle_ends_its_line_once() -> None:
    out = io.StringIO()
    console = Console(file=out, highlight=False, width=40)
    printer = AnswerPrinter(console, console)

    printer.show(AnswerPiece("text", "Hel"))
    printer.end_line()
    printer.end_line()
    printer.note("the server is away")

    assert out.getvalue() == "Hel\n· the server is away\n"


def test_a_long_remark_stays_one_line_to_be_copied() -> None:
    remark = "the session goes on: fairlead tail ses_" + "x" * 60

    assert print_pieces(AnswerPiece("note", remark)) == f"· {remark}\n"
