"""What a person reads when a session asks something."""

from typing import Final, NamedTuple

from fairlead_cli.chat.view.call_card import input_lines
from fairlead_cli.chat.view.entries import CallEntry
from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.chat.view.question_form import QuestionForm
from fairlead_cli.chat.view.session_view import Ask, SessionView
from fairlead_schema.permission import PermissionRequest, QuestionInfo

DIFF_LINES_MAX: Final = 2000
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
_OF_ONE_FILE: Final = frozenset({"edit", "read"})
"""The request of these names the path of the call in another form."""


class ShownAsk(NamedTuple):
    """One ask."""

    ask: Ask
    asked_by: str = ""
    """The sub-agent that asks; empty for the session itself."""
    call: CallEntry | None = None
    """The call that a permission is for."""


def shown_asks(view: SessionView, asked_by: str = "") -> list[ShownAsk]:
    """What a session asks, oldest first."""
    return [ShownAsk(ask, asked_by, _call_of(view, ask)) for ask in view.asks.values()]


def _call_of(view: SessionView, ask: Ask) -> CallEntry | None:
    source = ask.source if isinstance(ask, PermissionRequest) else None
    return None if source is None else view.call(source.call_id)


def ask_text(
    waiting: ShownAsk, question: QuestionInfo | None, *, count: int
) -> list[tuple[str, str]]:
    """The lines of an ask with their styles. `count` is how many wait."""
    ask = waiting.ask
    who = f"The sub-agent {waiting.asked_by}" if waiting.asked_by else "The model"
    more = f"  (1 of {count})" if count > 1 else ""
    if isinstance(ask, PermissionRequest):
        verb = _VERBS.get(ask.action, f"use {one_line(ask.action)} on")
        lines = [("bold yellow", f"{who} wants to {verb}{more}")]
        lines += [("", f"  {line}") for line in clean("\n".join(ask.resources)).split("\n")]
        return lines + (_diff_lines(ask) or _input_lines(ask, waiting.call))
    if question is None:
        return []
    header, questions = one_line(question.header), ask.questions
    place = (
        f"  question {questions.index(question) + 1} of {len(questions)}" if questions[1:] else ""
    )
    lines = [("bold yellow", f"{who} asks{more}" + (f": {header}" if header else "") + place)]
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
        choices.append((str(index), label, one_line(option.description, 300)))
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


def _input_lines(ask: PermissionRequest, call: CallEntry | None) -> list[tuple[str, str]]:
    """What the call was given, beyond what the request names."""
    if call is None:
        return []
    path = [str(call.input.get("path"))] if ask.action in _OF_ONE_FILE else []
    lines = input_lines(call.input, without={*ask.resources, *path})
    return [("dim", f"  {line}") for line in lines]


def _style(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "dim"
    return {"+": "green", "-": "red"}.get(line[:1], "dim")
