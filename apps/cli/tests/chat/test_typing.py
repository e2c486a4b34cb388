"""What a person types, completes, pastes and repeats."""

import pytest

from fairlead_cli.chat.view.command_line import (
    COMMANDS,
    PromptLine,
    ShellLine,
    SlashCommand,
    UnknownCommand,
    parse_line,
)
from fairlead_cli.chat.view.completion import (
    CompletionChoice,
    CompletionTarget,
    agent_choices,
    command_choices,
    complete,
    file_choice,
    find_target,
)
from fairlead_cli.chat.view.pasted import DroppedFiles, LongText, TypedText, read_paste
from fairlead_cli.chat.view.plain_text import clean, one_line
from fairlead_cli.chat.view.prompt_history import PromptHistory
from fairlead_cli.chat.view.question_form import QuestionForm
from fairlead_schema.permission import QuestionRequest
from fairlead_session.expansion.mention_tokens import find_mentions


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Say hello", PromptLine("Say hello")),
        ("/model sim/slow", SlashCommand("model", "sim/slow")),
        ("  /undo  ", SlashCommand("undo", "")),
        ("/review a.py", PromptLine("/review a.py")),
        ("/etc/hosts is a file", PromptLine("/etc/hosts is a file")),
        ("!ls -la", ShellLine("ls -la")),
        ("!", PromptLine("!")),
    ],
)
def test_a_line_is_a_prompt_a_command_or_a_command_for_the_shell(text: str, line: object) -> None:
    assert parse_line(text, frozenset({"review"})) == line


def test_a_command_with_a_typing_mistake_gets_a_suggestion() -> None:
    line = parse_line("/modle sim/fast")

    assert isinstance(line, UnknownCommand)
    assert line.message == "There is no command /modle: did you mean /model?"


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("/mo", CompletionTarget("command", "mo", 0)),
        ("/model x", None),
        ("see @src/m", CompletionTarget("file", "src/m", 4)),
        ("see @", CompletionTarget("file", "", 4)),
        ('see @"a b', CompletionTarget("file", "a b", 4)),
        ("mail a@b.c", None),
        ("@a and more", None),
    ],
)
def test_the_word_before_the_cursor_is_completed(
    line: str, target: CompletionTarget | None
) -> None:
    assert find_target(line, len(line), is_first_line=True) == target


def test_commands_complete_by_their_beginning_first() -> None:
    names = [choice.text for choice in command_choices("ex", [("index", "of the server")])]

    assert names == ["/explain", "/export", "/index"]
    assert len(command_choices("")) == len(COMMANDS)


def test_a_completed_path_replaces_its_word_and_keeps_the_rest() -> None:
    target = CompletionTarget("file", "sr", 4)

    choice = CompletionChoice("@src/a.py")
    assert complete("see @sr now", 7, target, choice) == ("see @src/a.py now", 13)
    assert complete("see @sr", 7, target, CompletionChoice("@src/")) == ("see @src/", 9)


@pytest.mark.parametrize(
    ("path", "is_directory", "mention"),
    [
        ("src/a.py", False, "@src/a.py"),
        ("a b.txt", False, '@"a b.txt"'),
        ("ünï/ä.txt", False, '@"ünï/ä.txt"'),
        ("it's.txt", False, '@"it\'s.txt"'),
        ("a@b,c.txt", False, '@"a@b,c.txt"'),
        ("end.", False, '@"end."'),
        ("src", True, "@src/"),
        ("dir with space", True, '@"dir with space/'),
        ('"quoted".txt', False, None),
        ("red\x1b[31m.txt", False, None),
        ("two\nlines.txt", False, None),
    ],
)
def test_a_path_is_mentioned_as_the_server_finds_it(
    path: str, mention: str | None, *, is_directory: bool
) -> None:
    choice = file_choice(path, is_directory=is_directory)

    assert (choice.text if choice else None) == mention
    if mention is not None and not is_directory:
        assert [token.name for token in find_mentions(mention)] == [path]


def test_a_sub_agent_is_completed_by_its_name() -> None:
    agents = [("explore", "Looks around."), ("general", "")]

    assert agent_choices("exp", agents) == [CompletionChoice("@explore", "Looks around.")]
    assert agent_choices("", agents) == []


def test_history_walks_back_and_forth_and_keeps_the_draft() -> None:
    history = PromptHistory(["one", "two", " "])
    history.add("two")
    history.add("three")

    assert [history.back("draft") for _ in range(4)] == ["three", "two", "one", None]
    assert [history.forth() for _ in range(4)] == ["two", "three", "draft", None]


@pytest.mark.parametrize(
    ("text", "pasted"),
    [
        ("some words", TypedText("some words")),
        ("/home/me/a.png", DroppedFiles(("/home/me/a.png",))),
        ("'/home/me/a b.png' /x/c.PDF", DroppedFiles(("/home/me/a b.png", "/x/c.PDF"))),
        ("file:///home/me/a%20b.png", DroppedFiles(("/home/me/a b.png",))),
        ("/home/me/my shot.png", DroppedFiles(("/home/me/my shot.png",))),
        ("/home/me/a.png is the file", TypedText("/home/me/a.png is the file")),
        ("it's", TypedText("it's")),
    ],
)
def test_a_paste_is_text_or_files(text: str, pasted: object) -> None:
    assert read_paste(text) == pasted


def test_a_long_paste_becomes_an_attachment() -> None:
    lines = read_paste("x\n" * 40)
    word = read_paste("y" * 2000)

    assert isinstance(lines, LongText)
    assert lines.label == "pasted text, 41 lines"
    assert isinstance(word, LongText)
    assert word.label == "pasted text, 2000 chars"


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("plain\nlines", "plain\nlines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("10%\r20%\r30%\ndone\r\n", "30%\ndone\n"),
        ("a\tb\x08\x00", "a    b"),
        ("broken \udcff here", "broken \N{REPLACEMENT CHARACTER} here"),
        ("safe\u202eevil", "safeevil"),
    ],
)
def test_text_from_outside_cannot_command_the_terminal(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


def test_one_line_is_never_longer_than_it_may_be() -> None:
    assert one_line("a\nb  c") == "a b c"
    assert len(one_line("x" * 500, 20)) == 20


def test_questions_are_answered_one_after_the_other() -> None:
    options = [{"label": "A", "description": ""}, {"label": "B", "description": ""}]
    single = {"question": "One?", "header": "1", "options": options, "custom": False}
    several = {"question": "Many?", "header": "2", "options": options, "multiple": True}
    request = QuestionRequest.model_validate(
        {"id": "que_1", "sessionID": "ses_a", "questions": [single, several]}
    )
    form = QuestionForm(request)
    takes_text = [form.takes_text]
    form.answer("B")
    takes_text.append(form.takes_text)
    assert takes_text == [False, True]
    for label in ("A", "B", "A"):
        form.mark(label)
    form.answer("and more")

    assert form.question is None
    assert form.answers == [["B"], ["B", "and more"]]
