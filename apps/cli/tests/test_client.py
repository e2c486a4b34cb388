"""The client of the HTTP API, against recorded answers."""

import json
from collections.abc import Awaitable, Callable

import httpx
import pytest

from fairlead_cli.client import Client
from fairlead_cli.commands.session import asks
from fairlead_cli.commands.session.explain import detail_lines
from fairlead_cli.commands.session.shell import follow_shell
from fairlead_cli.commands.stack.quota import named_uses, percent
from fairlead_cli.errors import CommandError, ServerRefused, Unreachable
from fairlead_schema.commands.input import ShellReceipt
from fairlead_schema.permission import (
    PermissionRequest,
    QuestionInfo,
    QuestionOption,
    QuestionRequest,
)

RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_a",
    "sessionID": "ses_a",
    "prompt": {"text": "hi"},
    "delivery": "steer",
    "timeCreated": 1,
}
REFUSAL = {"_tag": "SessionNotFoundError", "message": "Session not found: ses_a"}


class Server:
    """Gives the responses in turn, the last one again and again, and records the requests."""

    def __init__(self, answer: httpx.Response | None, *later: httpx.Response) -> None:
        self._answer = answer
        self._later = list(later)
        self.requests: list[httpx.Request] = []

    def client(self) -> Client:
        transport = httpx.MockTransport(self._handle)
        return Client(httpx.AsyncClient(transport=transport, base_url="http://test"))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self._answer is None:
            raise httpx.ConnectError("refused")
        answer, self._answer = self._answer, self._later.pop(0) if self._later else self._answer
        return answer


async def test_a_prompt_without_an_id_sends_none() -> None:
    server = Server(httpx.Response(200, json={"data": RECEIPT}))

    receipt = await server.client().prompt("ses_a", "hi")

    assert (receipt.id, receipt.admitted_seq) == ("msg_a", 2)
    assert json.loads(server.requests[0].content) == {"prompt": {"text": "hi"}, "delivery": "steer"}


SHELL_RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_s",
    "sessionID": "ses_a",
    "callID": "call_s",
    "command": "make",
    "timeCreated": 1,
}


def shell_stream(*events: tuple[str, dict[str, object]]) -> httpx.Response:
    envelopes = [{"id": "evt_1", "type": type_, "data": data} for type_, data in events]
    frames = (f"id: {seq}\ndata: {json.dumps(item)}\n\n" for seq, item in enumerate(envelopes, 2))
    return httpx.Response(200, text=": hello\n\n" + "".join(frames))


async def test_a_command_is_followed_to_its_own_end() -> None:
    ends = (
        ("session.next.shell.ended", {"messageID": "msg_other", "output": "no", "exit": 0}),
        ("session.next.shell.ended", {"messageID": "msg_s", "output": "ok\n", "exit": 2}),
    )
    server = Server(httpx.Response(200, json={"data": SHELL_RECEIPT}), shell_stream(*ends))
    client = server.client()

    receipt = await client.shell("ses_a", "make", message_id="msg_s")
    assert await follow_shell(client, receipt) == ("ok\n", 2)
    assert json.loads(server.requests[0].content) == {"command": "make", "id": "msg_s"}


async def test_a_command_that_somebody_withdrew_is_not_waited_for() -> None:
    gone = shell_stream(("input.cancelled", {"messageID": "msg_s"}))

    with pytest.raises(CommandError, match="withdrawn"):
        await follow_shell(Server(gone).client(), ShellReceipt.model_validate(SHELL_RECEIPT))


async def test_a_refusal_is_told_in_the_servers_words() -> None:
    server = Server(httpx.Response(404, json=REFUSAL))

    with pytest.raises(ServerRefused, match=r"\(404\): Session not found: ses_a"):
        await server.client().session("ses_a")


async def test_an_answer_that_is_not_ours_is_told_as_it_is() -> None:
    server = Server(httpx.Response(502, text="Bad gateway"))

    with pytest.raises(ServerRefused, match=r"\(502\): Bad gateway"):
        await server.client().sessions()


async def test_nobody_there_is_said() -> None:
    with pytest.raises(Unreachable, match="fairlead up"):
        await Server(None).client().sessions()


async def test_history_is_read_page_by_page() -> None:
    """P-32."""
    event = {"id": "evt_a", "type": "t", "data": {}}
    durable = {"aggregateID": "ses_a", "seq": 3, "version": 1}
    page = {"data": [{**event, "durable": durable}], "hasMore": False}
    server = Server(httpx.Response(200, json=page))

    envelopes = [envelope async for envelope in server.client().history("ses_a", after=2)]

    assert [envelope.durable.seq for envelope in envelopes if envelope.durable] == [3]
    assert server.requests[0].url.params["after"] == "2"


async def test_a_stream_asks_to_resume_after_what_was_seen() -> None:
    server = Server(httpx.Response(200, text="id: 8\ndata: {}\n\n"))
    stream = server.client().follow("ses_a", after=7, live=True)

    event = await anext(stream)
    await stream.aclose()

    assert event.seq == 8
    assert server.requests[0].url.path == "/api/session/ses_a/stream"
    assert server.requests[0].headers["last-event-id"] == "7"


async def test_a_resumed_stream_names_the_log_that_its_cursor_is_from() -> None:
    """C9: the gateway can then say that the log was restored since."""
    first = httpx.Response(200, text="id: 8\ndata: {}\n\n", headers={"fairlead-log": "a1b2"})
    body = {"_tag": "CursorExpiredError", "message": "The log was restored from a backup"}
    server = Server(first, httpx.Response(410, json=body))
    stream = server.client().follow("ses_a")

    await anext(stream)
    with pytest.raises(ServerRefused, match="restored from a backup"):
        await anext(stream)

    assert "log" not in server.requests[0].url.params
    assert server.requests[1].url.params["log"] == "a1b2"
    assert server.requests[1].headers["last-event-id"] == "8"


async def test_a_streamed_text_may_hold_a_unicode_line_separator() -> None:
    data = json.dumps({"delta": "a\u2028b"}, ensure_ascii=False)
    server = Server(httpx.Response(200, text=f"id: 8\ndata: {data}\n\n"))
    stream = server.client().follow("ses_a", after=7)

    event = await anext(stream)
    await stream.aclose()

    assert event.data == data


@pytest.mark.parametrize(
    ("send", "request_line"),
    [
        (lambda client: client.interrupt("ses_a"), "POST /api/session/ses_a/interrupt"),
        (lambda client: client.resume("ses_a"), "POST /api/session/ses_a/resume"),
        (lambda client: client.cancel("ses_a", "msg_a"), "DELETE /api/session/ses_a/input/msg_a"),
    ],
    ids=["interrupt", "resume", "cancel"],
)
async def test_a_command_needs_no_answer_but_its_status(
    send: Callable[[Client], Awaitable[None]], request_line: str
) -> None:
    """C-11, C-23, P-29."""
    server = Server(httpx.Response(204))

    await send(server.client())

    request = server.requests[0]
    assert f"{request.method} {request.url.path}" == request_line


async def test_an_explanation_is_shown_line_by_line() -> None:
    waiting = {"kind": "tool", "id": "call_1", "what": "the tool bash"}
    explanation = {"state": "waiting", "reason": "It waits.", "since": 0, "waiting_on": [waiting]}
    server = Server(httpx.Response(200, json={"data": explanation}))

    answer = await server.client().explain("ses_a")

    state, since, waits = detail_lines(answer)
    assert (state, waits) == ("state: waiting", "waiting on: the tool bash (call_1)")
    assert since.startswith("since: ")


PERMISSION = PermissionRequest(id="per_a", session_id="ses_a", action="bash", resources=("ls",))
QUESTION = QuestionRequest(
    id="que_a",
    session_id="ses_a",
    questions=(
        QuestionInfo(
            question="Which?",
            header="",
            options=(QuestionOption(label="this", description=""),),
        ),
    ),
)


async def test_what_people_answer_goes_to_the_session_that_asked() -> None:
    """K-15, K-20, N-24: a reply may be a word, a text, labels, or a rejection."""
    server = Server(httpx.Response(204))
    client = server.client()

    await client.reply(PERMISSION, "once", None)
    await client.reply(PERMISSION, "reject", "no")
    await client.answer(QUESTION, [["this"]])
    await client.answer(QUESTION, None)

    requests = [(request.url.path, request.content.decode()) for request in server.requests]
    assert requests == [
        ("/api/session/ses_a/permission/per_a/reply", '{"reply":"once"}'),
        ("/api/session/ses_a/permission/per_a/reply", '{"reply":"reject","message":"no"}'),
        ("/api/session/ses_a/question/que_a/reply", '{"answers":[["this"]]}'),
        ("/api/session/ses_a/question/que_a/reject", ""),
    ]


async def test_what_waits_is_read_and_told_in_a_line() -> None:
    """K-35, N-24."""
    data = {"data": [PERMISSION.wire()]}
    (permission,) = await Server(httpx.Response(200, json=data)).client().permissions()
    questions = Server(httpx.Response(200, json={"data": [QUESTION.wire()]}))
    (question,) = await questions.client().questions()

    assert (asks.describe(permission), asks.describe(question)) == ("bash ls", "Which? [this]")


async def test_the_quotas_of_a_tenant_are_shown_with_what_is_used() -> None:
    quotas = [{"quota": "turns", "used": 1, "allowed": 4}, {"quota": "calls", "used": 3}]
    own = {"name": "key:ann", "quotas": [{"quota": "sessions", "used": 2}]}
    data = {"tenant": "acme", "quotas": quotas, "cost": 0.5, "tokens": 9, "principal": own}
    server = Server(httpx.Response(200, json={"data": data}))

    report = await server.client().tenant_usage()

    assert [percent(use) for use in report.quotas] == ["25 %", ""]
    assert [(name, use.used) for name, use in named_uses(report)] == [
        ("turns", 1),
        ("calls", 3),
        ("principal.sessions", 2),
    ]
    assert percent(report.quotas[0].model_copy(update={"used": 4})) == "reached"
    assert str(server.requests[0].url) == "http://test/api/tenant/usage"
