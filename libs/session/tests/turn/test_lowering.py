"""Lowering: session history becomes the turns that any provider protocol can send."""

import pytest
from libs.session.tests.conftest import MODEL

from fairlead_schema.catalog import ModelRef
from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CompactionMessage,
    Content,
    CreationTime,
    Message,
    ModelSwitchedMessage,
    ReasoningBlock,
    ShellMessage,
    Span,
    SyntheticMessage,
    SystemMessage,
    TextBlock,
    UserMessage,
)
from fairlead_schema.prompt import AgentMention, PromptFile
from fairlead_schema.provider.request import (
    AssistantTurn,
    MediaPart,
    ReasoningPart,
    SystemTurn,
    TextPart,
    Turn,
    UserTurn,
)
from fairlead_schema.tools.content import ErrorInfo
from fairlead_session.turn.lowering import lower
from fairlead_testing.images import PNG, data_uri

AT = CreationTime(created=1)
META = {"acme": {"signature": "s"}}
SAID = TextBlock(id="t", text="so", provider_metadata=META)
THOUGHT = ReasoningBlock(id="r", text="hm", provider_metadata=META)
SILENT = ReasoningBlock(id="r", text="", provider_metadata=META)
PNG_URI = data_uri("image/png", PNG)


def assistant(
    *content: Content, model: ModelRef = MODEL, error: ErrorInfo | None = None
) -> AssistantMessage:
    return AssistantMessage(
        id="msg_a",
        agent="build",
        model=model,
        content=content,
        error=error,
        time=Span(created=1),
    )


def lowered(*messages: Message) -> tuple[Turn, ...]:
    return lower(messages, MODEL)


def test_switches_say_nothing_to_the_model() -> None:
    """O-01: they are for readers."""
    assert not lowered(
        AgentSwitchedMessage(id="msg_1", agent="plan", time=AT),
        ModelSwitchedMessage(id="msg_2", model=MODEL, time=AT),
    )


def test_a_user_message_is_its_text_then_its_files() -> None:
    """O-02: one media part per file, the URI as it is; mentioned agents are not sent."""
    message = UserMessage(
        id="msg_1",
        text="look",
        files=(PromptFile(uri=PNG_URI, mime="image/png", name="a.png"),),
        agents=(AgentMention(name="plan"),),
        time=AT,
    )

    assert lowered(message) == (
        UserTurn((TextPart("look"), MediaPart(PNG_URI, "image/png", "a.png"))),
    )


def test_synthetic_and_shell_are_said_by_the_user_and_system_by_the_system() -> None:
    """O-03: a shell shows its command and its output; a system message stays in its place."""
    turns = lowered(
        SyntheticMessage(id="msg_1", session_id="ses_1", text="note", time=AT),
        ShellMessage(
            id="msg_2", call_id="c", command="ls", output="a.py", time=Span(created=1, completed=2)
        ),
        SystemMessage(id="msg_3", text="news", time=AT),
    )

    assert turns[0] == UserTurn((TextPart("note"),))
    assert turns[1] == UserTurn((TextPart("$ ls\na.py"),))
    assert turns[2] == SystemTurn("news")


def test_a_compaction_is_told_as_history() -> None:
    """O-04: a wrapper says what it is, then summary and recent context in tags."""
    (turn,) = lowered(
        CompactionMessage(id="msg_1", reason="auto", summary="SUM", recent="REC", time=AT)
    )

    assert isinstance(turn, UserTurn)
    (part,) = turn.content
    assert isinstance(part, TextPart)
    opening, _, rest = part.text.partition("<summary>")
    assert "not a new request" in opening
    assert rest == "\nSUM\n</summary>\n<recent>\nREC\n</recent>"


@pytest.mark.parametrize(
    "content",
    [(), (TextBlock(id="t", text=""),), (ReasoningBlock(id="r", text=""),)],
    ids=["nothing", "empty text", "empty reasoning"],
)
def test_an_assistant_that_said_nothing_is_left_out(content: tuple[Content, ...]) -> None:
    """O-05: an empty turn is no turn."""
    assert lowered(assistant(*content)) == ()


def test_empty_reasoning_with_metadata_is_kept() -> None:
    """O-06: the provider needs its own signature back."""
    assert lowered(assistant(SILENT)) == (AssistantTurn((ReasoningPart("", META),)),)


def test_the_variant_does_not_make_another_model() -> None:
    """O-07: provider and model id decide."""
    other = MODEL.model_copy(update={"variant": "high"})

    assert lower((assistant(THOUGHT, model=other),), MODEL) == (
        AssistantTurn((ReasoningPart("hm", META),)),
    )


def test_the_same_model_gets_its_reasoning_back_with_metadata() -> None:
    """O-08: order and metadata as they were."""
    turns = lowered(assistant(THOUGHT, SAID))

    assert turns == (AssistantTurn((ReasoningPart("hm", META), TextPart("so", META))),)


def test_a_failed_assistant_loses_all_provider_metadata() -> None:
    """O-09: its reasoning stays reasoning; what was only metadata disappears."""
    failed = assistant(THOUGHT, SILENT, SAID, error=ErrorInfo(message="cut"))

    assert lowered(failed) == (AssistantTurn((ReasoningPart("hm"), TextPart("so"))),)


@pytest.mark.parametrize(
    "model",
    [ModelRef(provider_id="acme", id="slow"), ModelRef(provider_id="other", id="fast")],
)
def test_another_model_reads_reasoning_as_text(model: ModelRef) -> None:
    """O-10: what is empty disappears, metadata is dropped."""
    message = assistant(THOUGHT, SILENT, SAID, model=model)

    assert lowered(message) == (AssistantTurn((TextPart("hm"), TextPart("so"))),)
