"""Serialisation: the form of each message in the prompt for a summary."""

import pytest
from libs.session.tests.conftest import MODEL

from fairlead_schema.message import (
    AgentSwitchedMessage,
    AssistantMessage,
    CallSpan,
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
    ToolBlock,
    UserMessage,
)
from fairlead_schema.prompt import PromptFile
from fairlead_schema.tools.content import (
    CallExecutor,
    CompletedCall,
    ErrorInfo,
    FailedCall,
    FileContent,
    PendingCall,
    RunningCall,
    TextContent,
    ToolState,
)
from fairlead_session.compaction.serialise import entry, join_entries

AT = CreationTime(created=0)


def entry_of(message: Message, excerpt: int = 2000) -> str:
    return entry(message, excerpt=excerpt)


def answer(*blocks: Content) -> AssistantMessage:
    return AssistantMessage(
        id="msg_a", agent="build", model=MODEL, content=blocks, time=Span(created=0)
    )


def call(state: ToolState, *, hosted: bool = False) -> AssistantMessage:
    provider = CallExecutor(executed=hosted)
    span = CallSpan(created=0)
    return answer(ToolBlock(id="call_c", name="read", provider=provider, state=state, time=span))


def done(
    *content: TextContent | FileContent, structured: dict[str, int] | None = None
) -> AssistantMessage:
    arguments = {"path": "a.py"}
    return call(CompletedCall(input=arguments, content=content, structured=structured or {}))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (UserMessage(id="msg_m", text="hi", time=AT), "[User]: hi"),
        (
            SyntheticMessage(id="msg_m", session_id="ses_s", text="go on", time=AT),
            "[Synthetic]: go on",
        ),
        (SystemMessage(id="msg_m", text="Day 2", time=AT), "[System update]: Day 2"),
        (
            ShellMessage(
                id="msg_m", call_id="call_c", command="ls", output="a.py", time=Span(created=0)
            ),
            "[Shell]: ls\na.py",
        ),
        (answer(TextBlock(id="t", text="hey")), "[Assistant]: hey"),
        (
            answer(ReasoningBlock(id="r", text="hm"), TextBlock(id="t", text="hey")),
            "[Assistant reasoning]: hm\n[Assistant]: hey",
        ),
        (answer(ReasoningBlock(id="r", text="")), ""),
        (
            done(TextContent(text="x = 1")),
            '[Tool call]: read({"path":"a.py"})\n[Tool result]: x = 1',
        ),
        (
            done(structured={"n": 1}),
            '[Tool call]: read({"path":"a.py"})\n[Tool result]: {"n":1}',
        ),
        (
            call(FailedCall(input={}, error=ErrorInfo(message="denied"))),
            "[Tool call]: read({})\n[Tool error]: denied",
        ),
        (call(PendingCall(input='{"pa')), '[Tool call]: read({"pa)'),
        (call(RunningCall(input={})), "[Tool call]: read({})"),
    ],
)
def test_each_kind_has_its_prefix(message: Message, text: str) -> None:
    """G-25."""
    assert entry_of(message) == text


def test_long_output_is_cut_with_a_marker() -> None:
    """G-25: of results and of shells; at its limit nothing is cut."""
    output = "x" * 2001
    shell = ShellMessage(
        id="msg_m", call_id="call_c", command="cat", output=output, time=Span(created=0)
    )
    result = done(TextContent(text=output))

    for message in (shell, result):
        assert entry_of(message).endswith("x" * 2000 + "\n[1 more characters were left out]")
    assert entry_of(shell, excerpt=2001).endswith("x" * 2001)


def test_files_are_notes_with_their_kind_and_name() -> None:
    """G-26: the name, else the URI; what a data URI holds is never told."""
    files = (
        PromptFile(uri="data:image/png;base64,AAAA", mime="image/png", name="map.png"),
        PromptFile(uri="file:///w/a.txt", mime="text/plain"),
        PromptFile(uri="data:image/png;base64,AAAA", mime="image/png"),
    )

    text = entry_of(UserMessage(id="msg_m", text="see", files=files, time=AT))

    assert text.splitlines() == [
        "[User]: see",
        "[Attached image/png: map.png]",
        "[Attached text/plain: file:///w/a.txt]",
        "[Attached image/png]",
    ]


def test_media_of_tools_is_told_by_kind_and_name() -> None:
    """G-27: never as base64."""
    uri = "data:image/png;base64,AAAA"
    media = (
        FileContent(uri=uri, mime="image/png", name="plot"),
        FileContent(uri=uri, mime="image/png"),
    )

    assert entry_of(done(*media)).splitlines()[1:] == [
        "[Tool result]: [image/png: plot]",
        "[image/png]",
    ]


def test_a_hosted_result_is_told_as_it_came() -> None:
    """G-25: what a provider's own tool found."""
    state = CompletedCall(input={}, result=[{"url": "u"}])

    assert entry_of(call(state, hosted=True)).endswith('[Tool result]: [{"url":"u"}]')


def test_switches_and_checkpoints_say_nothing() -> None:
    """G-28."""
    silent: tuple[Message, ...] = (
        AgentSwitchedMessage(id="msg_m", agent="plan", time=AT),
        ModelSwitchedMessage(id="msg_m", model=MODEL, time=AT),
        CompactionMessage(id="msg_m", reason="auto", summary="s", recent="r", time=AT),
    )

    assert [entry_of(message) for message in silent] == ["", "", ""]


def test_entries_have_blank_lines_between_them() -> None:
    """G-29."""
    assert join_entries(("[User]: a", "[Assistant]: b")) == "[User]: a\n\n[Assistant]: b"
