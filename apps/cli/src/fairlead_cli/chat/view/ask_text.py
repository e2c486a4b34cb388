"""What a person reads when a session asks something."""

from typing import Final

from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.chat.view.question_form import QuestionForm
from fairlead_cli.chat.view.session_view import Ask
from fairlead_schema.permission import PermissionRequest, QuestionInfo

DIFF_LINES_MAX: Final = 12
_VERBS: Final = {
    "bash": "run",
    "edit": "change",
    "read": "read",
    "webfetch": "fetch",
    "websearch": "search the web for",
    "external_directory": "work outside of the location, in",
    "task": "start the sub-agent",
    "skill": "load the skill",
}


def ask_text(
    ask: Ask, question: QuestionInfo | None, *, asked_by: str, waiting: int
) -> list[tuple[str, str]]:
    """The lines of an ask with their styles."""
    who = f"The sub-agent {asked_by}" if asked_by else "The model"
    more = f"  (1 of {waiting})" if waiting > 1 else ""
    if isinstance(ask, PermissionRequest):
        verb = _VERBS.get(ask.action, f"use {one_line(ask.action)} on")
        lines = [("bold yellow", f"{who} wants to {verb}{more}")]
        lines += [("", f"  {line}") for line in clean("\n".join(ask.resources)).split("\n")]
        return lines + _diff_lines(ask)
    if question is None:
        return []
    header = one_line(question.header)
    lines = [("bold yellow", f"{who} asks{more}" + (f": {header}" if header else ""))]
    return lines + [("", f"  {line}") for line in clean(question.question).split("\n")]


def permission_choices(request: PermissionRequest) -> list[tuple[str, str, str]]:
    """The replies to a permission request: id, label and note."""
    kept = ", ".join(request.save or ())
    always = ("always", "Always", one_line(f"for {kept}, in this project", 60))
    return [
        ("once", "Yes, once", ""),
        *([always] if kept else []),
        ("reject", "No", "the session stops"),
        ("own-words", "No, and say why", "the model reads it and goes on"),
    ]


def question_choices(form: QuestionForm) -> list[tuple[str, str, str]]:
    """The answers to the next question: id, label and note."""
    question = form.question
    if question is None:
        return []
    choices = []
    for index, option in enumerate(question.options):
        mark = ("[x] " if option.label in form.marked else "[ ] ") if question.multiple else ""
        label = f"{mark}{one_line(option.label)}"
        choices.append((str(index), label, one_line(option.description, 100)))
    if question.multiple:
        choices.append(("done", "Done", "answer with what is marked"))
    if form.takes_text:
        choices.append(("own-words", "Something else", "in your own words"))
    return choices


def _diff_lines(request: PermissionRequest) -> list[tuple[str, str]]:
    diff = (request.metadata or {}).get("diff")
    if not isinstance(diff, str):
        return []
    lines = clean(diff).strip("\n").split("\n")
    shown = [(_style(line), f"  {line}") for line in lines[:DIFF_LINES_MAX]]
    left = len(lines) - len(shown)
    return [*shown, ("dim", f"  … {left} more lines")] if left > 0 else shown


def _style(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return {"+": "green", "-": "red"}.get(line[:1], "dim")
