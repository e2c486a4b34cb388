"""Prints the pieces of an answer as running text, with notes between them."""

from rich.console import Console

from fairlead_cli.prompts.answer import AnswerPiece


class AnswerPrinter:
    """Prints pieces as they come."""

    def __init__(self, out: Console, notes: Console) -> None:
        self._out = out
        self._notes = notes
        self._mid_line = False
        self._kind = ""

    def end_line(self) -> None:
        """End the line of an answer that stopped in the middle."""
        if self._mid_line:
            self._out.print()
            self._mid_line = False

    def note(self, text: str) -> None:
        """Print a remark between the parts of the answer."""
        self.show(AnswerPiece("note", text))

    def show(self, piece: AnswerPiece) -> None:
        """Print one piece without waiting for the next."""
        # The text may begin before the log has the end of the reasoning.
        if piece.kind != self._kind:
            self.end_line()
        self._kind = piece.kind
        if piece.kind != "note":
            style = "dim italic" if piece.kind == "reasoning" else ""
            self._out.print(piece.text, end="", style=style, markup=False, soft_wrap=True)
            self._mid_line = not piece.text.endswith("\n")
        elif piece.text:
            self._notes.print(f"· {piece.text}", style="cyan", markup=False, soft_wrap=True)
