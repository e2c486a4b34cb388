"""What a provider is sent of results that are long, kept aside, or its own."""

from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import ToolCalled, ToolSucceeded
from fairlead_schema.message import AssistantMessage, CallSpan, Span, ToolBlock
from fairlead_schema.provider.events import ToolCall, ToolResult
from fairlead_schema.provider.request import ToolTurn
from fairlead_schema.tools.content import (
    CompletedCall,
    FileContent,
    TextContent,
    managed_id,
    managed_path,
)
from fairlead_session.turn.lowering import lower
from fairlead_session.turn.stream_calls import StreamCalls

MODEL = ModelRef(provider_id="acme", id="fast")


def test_a_hosted_result_stays_as_the_provider_gave_it() -> None:
    """J-37: not bounded: the provider wants its own words back, to the letter."""
    calls = StreamCalls("msg_a")
    value = {"content": "x\n" * 100_000}
    (called,) = calls.call(ToolCall(id="c", name="search", input={}, executed=True))
    (settled,) = calls.settle(ToolResult(id="c", value=value))

    assert isinstance(called, ToolCalled)
    assert isinstance(settled, ToolSucceeded)
    assert settled.result == value
    assert settled.output_paths is None


def test_media_that_are_kept_aside_are_told_as_text() -> None:
    """J-22, J-29: a provider cannot fetch them; the model can, by their path."""
    path = managed_path("out_1")
    file = FileContent(uri=path, mime="image/png", name="shot.png")
    inline = FileContent(uri="data:image/png;base64,AAAA", mime="image/png")
    block = ToolBlock(
        id="c",
        name="read",
        state=CompletedCall(input={}, content=(TextContent(text="two"), file, inline)),
        time=CallSpan(created=1),
    )
    assistant = AssistantMessage(
        id="msg_a", agent="build", model=MODEL, content=(block,), time=Span(created=1)
    )

    (turn,) = [turn for turn in lower((assistant,), MODEL) if isinstance(turn, ToolTurn)]

    text, value, picture = turn.result.value
    assert text == {"type": "text", "text": "two"}
    assert value["type"] == "text"
    assert f"shot.png (image/png). It is at {path};" in value["text"]
    assert picture == inline.wire()


def test_a_managed_path_names_its_output_and_nothing_else_does() -> None:
    """J-30: no other path is taken for one."""
    assert managed_id(managed_path("out_1")) == "out_1"
    for other in ("out_1", "/out_1", "fairlead-output:/ses_1", "fairlead-output:/out_1/../x", ""):
        assert managed_id(other) is None
