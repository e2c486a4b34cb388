"""The expansion of prompts: commands, arguments, mentions, and what is kept of the source."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.location_catalog import CommandInfo
from fairlead_schema.prompt import AgentMention, Prompt, PromptFile, TextSpan
from fairlead_session.expansion.expansion import (
    SHELLS_MAX,
    CommandLoop,
    Expanding,
    MentionCatalog,
    TooLong,
    TooManyShells,
    apply_command,
    begin_expansion,
    finish_expansion,
    open_mentions,
)
from fairlead_session.expansion.mention_tokens import find_command, find_mentions
from fairlead_session.expansion.template import FilledTemplate, fill_template
from fairlead_session.input.fingerprint import fingerprint

CATALOG = MentionCatalog(
    agents={"explore": True, "deploy": False},
    references={"handbook": "The reference handbook is at /srv/handbook."},
    files={"src/app.py": "file:///w/src/app.py", "docs": "file:///w/docs/"},
)
REVIEW = CommandInfo(name="review", template="Review $1 with @explore.\nFocus: $2")


def expand(text: str, *commands: CommandInfo) -> Prompt:
    now: object = begin_expansion(Prompt(text=text))
    for command in commands:
        assert isinstance(now, Expanding)
        now = apply_command(now, command, length_max=1000)
    assert isinstance(now, Expanding)
    return finish_expansion(now, CATALOG)


def fill(template: str, arguments: str) -> FilledTemplate:
    filled = fill_template(template, arguments, length_max=1000)
    assert isinstance(filled, FilledTemplate)
    return filled


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/review src", "review"),
        ("/review", "review"),
        ("/a.b-c_1\nmore", "a.b-c_1"),
        ("/etc/passwd has what?", None),
        ("see /review", None),
        ("/", None),
        ("//x", None),
        ("", None),
    ],
)
def test_only_the_first_word_is_a_command(text: str, name: str | None) -> None:
    """P-22: a path is no command."""
    token = find_command(text)

    assert (None if token is None else token.name) == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at @src/app.py, then @docs.", ["src/app.py", "docs"]),
        ("(@explore) and '@handbook'", ["explore", "handbook"]),
        ("mail ann@example.org or use a@b", []),
        ("@./x @../y @~/z", ["./x", "../y", "~/z"]),
        ("@", []),
        ("@@twice", []),
    ],
)
def test_a_mention_begins_a_word(text: str, names: list[str]) -> None:
    """P-22: an address is no mention, and a full stop belongs to the sentence."""
    tokens = find_mentions(text)

    assert [token.name for token in tokens] == names
    assert [text[token.start : token.end] for token in tokens] == [f"@{name}" for name in names]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('see @"a b.txt", then @"c"', ["a b.txt", "c"]),
        ('@"" and @"open', []),
        ('@"two\nlines" x', []),
        ('say "@docs" and x@"y z"', ["docs"]),
    ],
)
def test_a_name_with_spaces_stands_in_quotes(text: str, names: list[str]) -> None:
    """P-22: the span has the quotes."""
    tokens = find_mentions(text)

    assert [token.name for token in tokens] == names
    assert all(text[token.start] == "@" for token in tokens)
    assert [text[token.start + 1 : token.end].strip('"') for token in tokens] == names


@pytest.mark.parametrize("place", ["$ARGUMENTS", "$1", "!`echo $1`", "!`echo $ARGUMENTS`"])
def test_a_template_that_would_be_huge_is_not_built(place: str) -> None:
    """P-22: ten thousand places times half a megabyte would end the process of everybody."""
    filled = fill_template(place * 10_000, "x" * 500_000, length_max=1000)

    assert isinstance(filled, int)
    assert filled >= 5_000_000_000


def test_a_long_command_of_a_template_is_refused() -> None:
    """P-22: one call of `bash` takes no more than a person may ask for."""
    long = CommandInfo(name="log", template="!`git log $1`")
    now = apply_command(
        begin_expansion(Prompt(text="/log " + "x" * 200_000)), long, length_max=10**6
    )

    assert isinstance(now, TooLong)


def test_a_file_that_the_sender_attached_is_attached_once() -> None:
    """P-22: clients attach the files that they know; the template repeats the mention."""
    file = PromptFile(uri="file:///w/src/app.py", mime="text/x-python")
    now = begin_expansion(Prompt(text="/review @src/app.py", files=(file,)))
    step = apply_command(now, REVIEW, length_max=1000)
    assert isinstance(step, Expanding)

    assert finish_expansion(step, CATALOG).files == (file,)


def test_each_mention_keeps_its_own_span() -> None:
    """P-24: the same name twice has two places."""
    source = expand("@docs or @docs").source

    assert source is not None
    assert [mention.start for mention in source.mentions] == [0, 9]


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Say $ARGUMENTS!", "a b", "Say a b!"),
        ("$1 then $2", "one two three", "one then two three"),
        ("$2 before $1", "'a b' c", "c before a b"),
        ("$1 and $2", "one", "one and "),
        ("No place", "more", "No place\n\nmore"),
        ("No place", "", "No place"),
        ("$12 $1x $HOME", "a", " $1x $HOME"),
        ("it's $1", "don't", "it's don't"),
    ],
)
def test_arguments_take_their_places(template: str, arguments: str, text: str) -> None:
    """P-22: the highest number takes the rest."""
    assert fill(template, arguments).text == text


def test_arguments_inside_a_command_are_words_and_add_no_command() -> None:
    """P-22: whatever an argument says, the shell gets it as one word."""
    filled = fill("!`git log $1`\n$ARGUMENTS", "'; rm -rf /' !`id`")

    assert filled.shells == ("git log '; rm -rf /' '!`id`'",)
    assert filled.text.endswith("!`id`")


def test_a_command_becomes_its_template_with_its_mentions() -> None:
    """P-22, P-24: the source keeps what was typed and where each name stood."""
    prompt = expand("/review @src/app.py speed", REVIEW)

    assert prompt.text.startswith("Review @src/app.py with @explore.\nFocus: speed")
    assert "task" in prompt.text
    assert prompt.files is not None
    assert [(file.uri, file.name) for file in prompt.files] == [
        ("file:///w/src/app.py", "src/app.py")
    ]
    span = prompt.files[0].source
    assert span is not None
    assert prompt.text[span.start : span.end] == span.text == "@src/app.py"
    assert prompt.agents is not None
    assert [agent.name for agent in prompt.agents] == ["explore"]
    source = prompt.source
    assert source is not None
    assert source.text == "/review @src/app.py speed"
    assert source.fingerprint == fingerprint(Prompt(text=source.text))
    assert [(m.kind, m.name, source.text[m.start : m.end]) for m in source.mentions] == [
        ("command", "review", "/review"),
        ("file", "src/app.py", "@src/app.py"),
        ("agent", "explore", "/review"),
    ]


def test_a_reference_is_told_and_a_denied_agent_is_not_promised() -> None:
    """P-24: guidance follows the permissions."""
    prompt = expand("use @handbook, @handbook and @deploy")

    assert prompt.text.count("/srv/handbook") == 1
    assert "which you may not use here" in prompt.text


def test_a_file_is_attached_once_and_a_command_mentions_nothing() -> None:
    """P-22: what the shell gets is not for the model to read."""
    show = CommandInfo(name="show", template="Read $1 and $1.\n!`npm view @docs $1`")

    prompt = expand("/show @src/app.py", show)

    assert prompt.files is not None
    assert [file.name for file in prompt.files] == ["src/app.py"]


def test_a_word_that_names_nothing_stays_a_word() -> None:
    """P-22: decorators and handles are ordinary text, and the prompt is stored as it is."""
    prompt = Prompt(text="use @dataclass and @property")

    assert finish_expansion(begin_expansion(prompt), CATALOG) is prompt


def test_what_the_sender_resolved_is_not_resolved_again() -> None:
    """P-24: an agent that a client names gets its guidance, and no second mention."""
    span = TextSpan(start=4, end=12, text="@explore")
    agents = (AgentMention(name="explore", source=span),)
    prompt = Prompt(text="ask @explore", agents=agents)

    expanded = finish_expansion(begin_expansion(prompt), CATALOG)

    assert open_mentions(begin_expansion(prompt)) == ()
    assert expanded.agents == agents
    assert "task" in expanded.text


def test_the_first_command_chooses_agent_and_model_unless_the_prompt_does() -> None:
    model = ModelRef(provider_id="acme", id="fast")
    outer = CommandInfo(name="outer", template="/inner", agent="plan")
    inner = CommandInfo(name="inner", template="Go", agent="build", model=model)

    prompt = expand("/outer", outer, inner)
    assert (prompt.text, prompt.agent, prompt.model) == ("Go", "plan", model)
    now = apply_command(begin_expansion(Prompt(text="/outer", agent="own")), outer, length_max=100)
    assert isinstance(now, Expanding)
    assert finish_expansion(now, CATALOG).agent == "own"


def test_a_template_that_includes_itself_is_refused() -> None:
    """P-22: a loop is an error, and nothing of it is admitted."""
    ping = CommandInfo(name="ping", template="/pong $ARGUMENTS")
    pong = CommandInfo(name="pong", template="/ping $ARGUMENTS")
    now = begin_expansion(Prompt(text="/ping x"))
    for command in (ping, pong):
        step = apply_command(now, command, length_max=100)
        assert isinstance(step, Expanding)
        now = step

    assert apply_command(now, ping, length_max=100) == CommandLoop(("ping", "pong", "ping"))


def test_a_template_that_grows_too_far_is_refused() -> None:
    big = CommandInfo(name="big", template="$ARGUMENTS" * 50)
    many = CommandInfo(name="many", template="!`true`" * (SHELLS_MAX + 1))

    text = "/big " + "x" * 100
    assert apply_command(begin_expansion(Prompt(text=text)), big, length_max=1000) == TooLong(
        5000, 1000
    )
    refused = apply_command(begin_expansion(Prompt(text="/many")), many, length_max=10_000)
    assert refused == TooManyShells(SHELLS_MAX)


@PROPERTY
@for_all(st.text(max_size=200), st.text(max_size=80))
def test_any_text_and_any_arguments_are_expanded_without_an_error(text: str, more: str) -> None:
    """P-22: total. A retry of the same source has the same fingerprint, whatever the files are."""
    prompt = Prompt(text=text)
    with_files = finish_expansion(begin_expansion(prompt), CATALOG)
    without = finish_expansion(begin_expansion(prompt), MentionCatalog())
    assert fingerprint(with_files) == fingerprint(without) == fingerprint(prompt)

    filled = fill_template(text, more, length_max=100_000)
    assert isinstance(filled, FilledTemplate)
    assert len(filled.shells) == len(fill(text, "").shells)
