"""Lowering of tool calls: where calls and results go, and what a result reads like."""

import pytest
from libs.session.tests.conftest import MODEL

from fairlead_schema.catalog import ModelRef
from fairlead_schema.message import (
    AssistantMessage,
    CallSpan,
    Content,
    Span,
    TextBlock,
    ToolBlock,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
)
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
from fairlead_session.turn.lowering import lower

OTHER = ModelRef(provider_id="acme", id="slow")
HOSTED = CallExecutor(executed=True, metadata={"call": 1}, result_metadata={"result": 2})
LOCAL = CallExecutor(metadata={"call": 1})
TEXT = TextContent(text="out")
IMAGE = FileContent(uri="data:image/png;base64,AA==", mime="image/png")


def block(state: ToolState, provider: CallExecutor | None = None, id_: str = "c") -> ToolBlock:
    return ToolBlock(id=id_, name="read", state=state, provider=provider, time=CallSpan(created=1))


def turns_of(
    *content: Content, model: ModelRef = MODEL, error: ErrorInfo | None = None
) -> tuple[AssistantTurn, tuple[ToolResultPart, ...]]:
    """The assistant's turn, and the results that follow it as turns of their own."""
    message = AssistantMessage(
        id="msg_a",
        agent="build",
        model=model,
        content=content,
        error=error,
        time=Span(created=1),
    )
    turn, *tools = lower((message,), MODEL)
    assert isinstance(turn, AssistantTurn)
    return turn, tuple(tool.result for tool in tools if isinstance(tool, ToolTurn))


def metadata(part: object) -> object:
    assert isinstance(part, ToolCallPart | ToolResultPart)
    return part.metadata


def result(state: ToolState, provider: CallExecutor | None = None) -> ToolResultPart:
    _turn, (only,) = turns_of(block(state, provider))
    return only


def test_hosted_results_stay_inside_and_local_results_follow() -> None:
    """O-11: a hosted call and its result are one turn; local results are turns of their own."""
    done = CompletedCall(input={"a": 1}, content=(TEXT,))

    turn, results = turns_of(
        TextBlock(id="t", text="so"), block(done, HOSTED, "h"), block(done, None, "l"), block(done)
    )

    kinds = [type(part) for part in turn.content]
    assert kinds == [TextPart, ToolCallPart, ToolResultPart, ToolCallPart, ToolCallPart]
    assert [result.call_id for result in results] == ["l", "c"]


def test_a_hosted_result_prefers_what_the_provider_sent() -> None:
    """O-12: the raw value, and the metadata of the result."""
    done = CompletedCall(input={}, structured={"shown": 1}, result=[{"raw": 1}])

    turn, _ = turns_of(block(done, HOSTED))

    assert metadata(turn.content[0]) == {"call": 1}
    assert turn.content[1] == ToolResultPart("c", "read", "json", [{"raw": 1}], {"result": 2})


def test_result_metadata_falls_back_to_the_calls() -> None:
    """O-12: a result without metadata of its own goes with its call's."""
    hosted = CallExecutor(executed=True, metadata={"call": 1})

    turn, _ = turns_of(block(CompletedCall(input={}, result="x"), hosted))

    assert metadata(turn.content[1]) == {"call": 1}


def test_secrets_of_a_provider_do_not_leave_for_another_model() -> None:
    """D11: a hosted result goes to another model without its encrypted and signed fields."""
    found = [{"url": "u", "encrypted_content": "x", "page": {"thoughtSignature": "y", "age": 1}}]
    native = {"anthropic": {"type": "web_search_tool_result"}}
    by = CallExecutor(executed=True, metadata={"call": 1}, result_metadata=native)
    hosted = block(CompletedCall(input={"q": 1, "signature": "z"}, result=found), by)

    same, _ = turns_of(hosted)
    other, _ = turns_of(hosted, model=OTHER)

    assert same.content[1] == ToolResultPart("c", "read", "json", found, native)
    assert other.content == (
        ToolCallPart("c", "read", {"q": 1}, executed=True),
        ToolResultPart("c", "read", "json", [{"url": "u", "page": {"age": 1}}]),
    )


def test_the_result_of_a_local_call_goes_to_every_model_whole() -> None:
    """D11: `signature` is a word of the file here, not a secret of a provider."""
    done = CompletedCall(input={"signature": "def f()"}, structured={"signature": "def f()"})

    turn, (sent,) = turns_of(block(done, LOCAL), model=OTHER)

    assert turn.content == (ToolCallPart("c", "read", {"signature": "def f()"}),)
    assert sent.value == {"signature": "def f()"}


@pytest.mark.parametrize(("raw", "sent"), [('{"a": 1}', {"a": 1}), ('{"a": ', '{"a": '), ("", "")])
def test_pending_input_is_parsed_if_it_can_be(raw: str, sent: object) -> None:
    """O-13: half an input is sent as the words it is, and has no result."""
    assert turns_of(block(PendingCall(input=raw))) == (
        AssistantTurn((ToolCallPart("c", "read", sent),)),
        (),
    )


def test_a_running_call_has_no_result_yet() -> None:
    """O-13: the call alone."""
    turn, results = turns_of(block(RunningCall(input={"a": 1})))

    assert turn.content == (ToolCallPart("c", "read", {"a": 1}),)
    assert results == ()


@pytest.mark.parametrize(
    ("state", "kind", "value"),
    [
        (CompletedCall(input={}, content=(TEXT,)), "text", "out"),
        (CompletedCall(input={}, structured={"n": 1}), "json", {"n": 1}),
        (
            CompletedCall(input={}, structured={"n": 1}, content=(TEXT, IMAGE)),
            "content",
            [
                {"type": "text", "text": "out"},
                {"type": "file", "uri": IMAGE.uri, "mime": "image/png"},
            ],
        ),
        (
            CompletedCall(input={}, content=(IMAGE,)),
            "content",
            [{"type": "file", "uri": IMAGE.uri, "mime": "image/png"}],
        ),
    ],
    ids=["text", "structured", "mixed", "media"],
)
def test_a_result_is_sent_as_what_it_is(state: CompletedCall, kind: str, value: object) -> None:
    """O-14: media stays native media, never JSON text."""
    sent = result(state, LOCAL)

    assert (sent.kind, sent.value) == (kind, value)


def test_a_failed_call_is_an_error_value() -> None:
    """O-15: the error, and whatever content and structure it had."""
    failed = FailedCall(
        error=ErrorInfo(message="denied"), content=(TEXT,), structured={"partial": True}
    )

    assert result(failed) == ToolResultPart(
        "c",
        "read",
        "error",
        {
            "error": "denied",
            "content": [{"type": "text", "text": "out"}],
            "structured": {"partial": True},
        },
    )


@pytest.mark.parametrize(
    ("model", "error"), [(OTHER, None), (MODEL, ErrorInfo(message="cut"))], ids=["other", "failed"]
)
def test_tool_metadata_goes_only_to_the_model_that_gave_it(
    model: ModelRef, error: ErrorInfo | None
) -> None:
    """O-08, O-09, O-10: another model, or a failed turn, gets calls and results without it."""
    done = CompletedCall(input={}, result="x")

    turns, _ = turns_of(block(done, LOCAL))
    turn, results = turns_of(block(done, HOSTED), block(done, LOCAL, "l"), model=model, error=error)

    assert metadata(turns.content[0]) == {"call": 1}
    assert [metadata(part) for part in (*turn.content, *results)] == [None, None, None, None]


def test_a_tools_file_that_lies_elsewhere_is_told_as_text() -> None:
    """O-16: a result with a mere reference to a file can be sent, and is plain text alone."""
    file = FileContent(uri="https://host/a.png", mime="image/png", name="a.png")

    alone = result(CompletedCall(input={}, content=(file,)), LOCAL)
    beside = result(CompletedCall(input={}, content=(file, IMAGE)), LOCAL)

    assert alone.kind == "text"
    assert "https://host/a.png" in alone.value
    assert [part["type"] for part in beside.value] == ["text", "file"]


@pytest.mark.parametrize("text", ['{"pa', "[" * 100_000, "]", ""])
def test_an_input_that_broke_off_is_told_as_it_stands(text: str) -> None:
    """D-14: however it broke off, also nested beyond what can be read."""
    turn, results = turns_of(block(PendingCall(input=text)))

    (call,) = turn.content
    assert isinstance(call, ToolCallPart)
    assert (call.input, results) == (text, ())
