"""Application tools over an in-memory log: registered, called, queued, settled from outside."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_eventlog.memory.registers import MemoryRegistrations
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues
from fairlead_schema.commands.application_tools import (
    ListRegisteredTools,
    RegisterTool,
    SettleTool,
    ToolRegistrationKey,
    ToolTask,
)
from fairlead_schema.events import (
    InterruptRequested,
    PermissionAsked,
    ToolDeferred,
    ToolFailed,
    ToolSucceeded,
)
from fairlead_schema.record import Draft
from fairlead_schema.tools.content import ErrorInfo, Executor, TextContent, managed_id
from fairlead_schema.tools.request import ToolInfo
from fairlead_service.config.configuration import Config
from fairlead_service.ids import now_ms
from fairlead_service.rpc.answers import parse_tenant
from fairlead_session.calls.output_bounds import LINES_MAX
from fairlead_session.execution.recovery import INTERRUPTED_TOOL
from fairlead_tools.builtin import builtins
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.settle import DEADLINE_MARGIN_MS
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.registry.application import records as records_module
from fairlead_tools.registry.application.calls import PAUSES_S, RESERVED_NAMES, tool_from_record
from fairlead_tools.registry.application.records import ToolRecords
from fairlead_tools.registry.application.verbs import READ_PAUSES_S, ToolVerbs
from fairlead_tools.registry.registry import ANYWHERE, Registry, Scope
from services.tools.tests.conftest import AT, Harness, answer_of, run_worker, tool, wait_until

HERE = Scope("default", "/w")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DOUBLE: dict[str, Any] = {
    "name": "double",
    "description": "doubles",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "subject": "fairlead.app.default.math",
}
QUEUED = {**DOUBLE, "mode": "queue", "subject": "fairlead.job.default.math", "timeoutMs": 60_000}


@dataclass
class ApplicationTools:
    """A worker together with its tool verbs."""

    harness: Harness
    verbs: ToolVerbs
    worker: ToolWorker

    async def ask(self, verb: str, body: object, tenant: str = "default") -> dict[str, Any]:
        kinds: dict[str, tuple[Any, Callable[..., Awaitable[Any]]]] = {
            "register": (RegisterTool, self.verbs.register),
            "unregister": (ToolRegistrationKey, self.verbs.unregister),
            "list": (ListRegisteredTools, self.verbs.list_tools),
            "settle": (SettleTool, self.verbs.settle),
        }
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        command, perform = kinds[verb]
        return await answer_of(command, raw, lambda command: perform(parse_tenant(tenant), command))

    async def offered_tools(self, scope: Scope = HERE) -> dict[str, ToolInfo]:
        await self.harness.registry.refresh(scope, sure=True)
        return {tool.name: tool for tool in self.harness.registry.catalog(scope).tools}

    async def call(self, name: str, *, id_: str = "call_1", **fields: Any) -> None:  # noqa: ANN401
        await self.offered_tools()
        tool_ = self.harness.registry.find(name, HERE)
        assert tool_ is not None
        await self.harness.call(tool_, id_=id_, **fields)

    def serve(self, subject: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        assert isinstance(self.harness.eventlog.requests, MemoryRequests)
        self.harness.eventlog.requests.answerers[subject] = answer

    async def serve_all(self) -> list[str]:
        async with run_worker(self.harness.worker("wkr_b")):
            await wait_until(lambda: not self.harness.jobs)
        return await self.harness.settlements()


@pytest.fixture
def application(harness: Harness) -> ApplicationTools:
    return application_tools(harness)


def application_tools(
    harness: Harness,
    *,
    pauses_s: tuple[float, ...] = PAUSES_S,
    read_pauses_s: tuple[float, ...] = READ_PAUSES_S,
) -> ApplicationTools:
    records = ToolRecords(
        harness.eventlog.tool_registrations,
        harness.registry,
        partial(tool_from_record, harness.eventlog, pauses_s=pauses_s),
    )
    harness.registry.refresh_with(records.refresh)
    worker = harness.worker()
    verbs = ToolVerbs(
        records,
        harness.registry,
        worker.lifecycle,
        harness.eventlog.client_consumers,
        read_pauses_s,
    )
    return ApplicationTools(harness, verbs, worker)


async def double_input(body: bytes) -> bytes:
    task = ToolTask.model_validate_json(body)
    return json.dumps({"output": {"n": task.input["n"] * 2}}).encode()


async def test_a_registered_tool_is_offered_called_and_settled(
    application: ApplicationTools,
) -> None:
    """J-01, J-19: the catalogue shows the schema as registered, and the log gets the output."""
    answer = await application.ask("register", DOUBLE)
    application.serve(DOUBLE["subject"], double_input)
    await application.call("double", n=4)

    assert answer["data"]["name"] == "double"
    assert (await application.offered_tools())["double"].input_schema == SCHEMA
    assert await application.serve_all() == ["{'n': 8}"]


async def test_the_key_goes_along_and_an_error_is_told_in_the_services_words(
    application: ApplicationTools,
) -> None:
    """J-20: the request has a key for safe retries; the error text is the service's."""
    tasks: list[ToolTask] = []

    async def refuse(body: bytes) -> bytes:
        tasks.append(ToolTask.model_validate_json(body))
        return b'{"error": {"message": "no more numbers"}}'

    await application.ask("register", DOUBLE)
    application.serve(DOUBLE["subject"], refuse)
    await application.call("double", n=4)

    assert await application.serve_all() == ["no more numbers"]
    assert [(task.key, task.tenant, task.agent) for task in tasks] == [
        ("ses_1:msg_a:call_1", "default", "build")
    ]


async def test_input_that_does_not_fit_is_never_sent(application: ApplicationTools) -> None:
    """J-17."""
    bodies: list[bytes] = []

    async def record_body(body: bytes) -> bytes:
        bodies.append(body)
        return b"{}"

    await application.ask("register", DOUBLE)
    application.serve(DOUBLE["subject"], record_body)
    await application.call("double", n="four")

    (message,) = await application.serve_all()
    assert message.startswith("Invalid tool input: n: 'four' is not of type 'integer'")
    assert bodies == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b'{"output": {"n": "x"}}', "Tool execution failed: Invalid tool output: n: 'x'"),
        (b'{"output": 3}', "Tool execution failed: Invalid tool output: 3 is not of type"),
        (b"{}", "Tool execution failed: Invalid tool output: None is not"),
        (b"rubbish", "double sent an invalid answer"),
        (b'{"output": 1, "error": {"message": "m"}}', "double sent an invalid answer"),
    ],
)
async def test_output_that_does_not_fit_is_never_a_success(
    application: ApplicationTools, answer: bytes, message: str
) -> None:
    """J-18."""

    async def answer_request(_body: bytes) -> bytes:
        return answer

    await application.ask("register", DOUBLE)
    application.serve(DOUBLE["subject"], answer_request)
    await application.call("double", n=4)

    (settlement,) = await application.serve_all()
    assert settlement.startswith(message)


async def test_nobody_there_means_that_nothing_ran(harness: Harness) -> None:
    """J-20: the worker tries again first, which is safe, and the error is typed."""
    application = application_tools(harness, pauses_s=(0.0,))
    await application.ask("register", DOUBLE)
    await application.call("double", n=4)

    (message,) = await application.serve_all()

    assert message == "double is unavailable: no service answers for it. It was not run."


@pytest.mark.parametrize(
    ("retry", "ending"),
    [("once", "It may have run."), ("idempotent", "It may be called again.")],
)
async def test_no_answer_in_time_leaves_the_outcome_unknown(
    application: ApplicationTools, retry: str, ending: str
) -> None:
    """J-20: the call is settled as unknown and not sent again."""
    bodies: list[bytes] = []

    async def hang(body: bytes) -> bytes:
        bodies.append(body)
        await asyncio.sleep(60)
        return b"{}"

    await application.ask("register", {**DOUBLE, "timeoutMs": 20, "retry": retry})
    application.serve(DOUBLE["subject"], hang)
    await application.call("double", n=4)

    (message,) = await application.serve_all()
    assert message == f"double did not answer: its outcome is unknown. {ending}"
    assert len(bodies) == 1
    assert [failure.error.outcome for failure in await failures(application)] == ["unknown"]


async def test_another_schema_makes_a_call_stale_and_the_same_does_not(
    application: ApplicationTools,
) -> None:
    """J-05, J-06: the process that changed the registration does not matter."""
    application.serve(DOUBLE["subject"], double_input)
    await application.ask("register", DOUBLE)
    await application.call("double", id_="call_1", n=1)
    await application.ask("register", DOUBLE)
    await application.call("double", id_="call_2", n=2)
    other = {**SCHEMA, "properties": {"n": {"type": "number"}}}
    assert await application.serve_all() == ["{'n': 2}", "{'n': 4}"]

    await application.call("double", id_="call_3", n=3)
    await application.ask("register", {**DOUBLE, "inputSchema": other})

    assert (await application.serve_all())[-1] == "Stale tool call: double"
    await application.call("double", id_="call_4", n=3)
    await application.ask("unregister", {"name": "double"})
    assert (await application.serve_all())[-1] == "Stale tool call: double"


async def test_a_worker_that_has_not_heard_yet_asks_before_it_refuses(
    application: ApplicationTools,
) -> None:
    """J-02: another worker may have advertised the tool a moment ago."""
    await application.offered_tools()
    other = Registry()
    elsewhere = ToolRecords(
        application.harness.eventlog.tool_registrations,
        other,
        partial(tool_from_record, application.harness.eventlog),
    )
    await elsewhere.register("default", RegisterTool.model_validate(DOUBLE))
    await elsewhere.refresh(HERE, sure=True)
    double = other.find("double", HERE)
    assert double is not None
    application.serve(DOUBLE["subject"], double_input)
    await application.harness.call(double, n=4)

    assert await application.serve_all() == ["{'n': 8}"]


async def test_a_worker_that_watches_offers_a_tool_at_once(application: ApplicationTools) -> None:
    """D5: what it read a moment ago does not count any more."""
    store = application.harness.eventlog.tool_registrations
    other = Registry()
    elsewhere = ToolRecords(store, other, partial(tool_from_record, application.harness.eventlog))
    await store.watch(elsewhere.forget)
    await elsewhere.refresh(HERE)
    assert other.find("double", HERE) is None

    await application.ask("register", DOUBLE)
    await elsewhere.refresh(HERE)

    assert other.find("double", HERE) is not None


async def test_a_tenants_tools_are_its_own(application: ApplicationTools) -> None:
    """J-15."""
    theirs = {**DOUBLE, "subject": "fairlead.app.acme.math"}

    assert "data" in await application.ask("register", theirs, "acme")

    assert "double" not in await application.offered_tools()
    assert "double" in await application.offered_tools(Scope("acme", "/w"))
    assert (await application.ask("list", {}))["data"]["tools"] == []


async def test_a_place_and_a_later_service_come_first_and_go_again(
    application: ApplicationTools,
) -> None:
    """J-03, J-04, J-08: the order holds across services as it does inside a process."""
    description = partial(_description, application)
    await application.ask("register", {**DOUBLE, "service": "one", "description": "one"})
    await application.ask("register", {**DOUBLE, "service": "two", "description": "two"})
    assert await description() == "two"
    await application.ask("register", {**DOUBLE, "service": "one", "description": "one"})
    assert await description() == "two"
    await application.ask("register", {**DOUBLE, "location": "/w", "description": "here"})
    assert await description() == "here"

    await application.ask("unregister", {"name": "double", "location": "/w"})
    assert await description() == "two"
    await application.ask("unregister", {"name": "double", "service": "two"})
    assert await description() == "one"


async def _description(application: ApplicationTools) -> str:
    await asyncio.sleep(0.002)
    return (await application.offered_tools())["double"].description


async def test_a_service_that_vanished_takes_its_tools_along(
    application: ApplicationTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-04: a service keeps its tools by registering again in time."""
    clock = now_ms()
    monkeypatch.setattr(records_module, "now_ms", lambda: clock)
    await application.ask("register", {**DOUBLE, "ttlMs": 5000})
    clock += 4000
    await application.ask("register", {**DOUBLE, "ttlMs": 5000})
    clock += 4000
    assert "double" in await application.offered_tools()

    clock += 2000
    assert "double" not in await application.offered_tools()
    assert (await application.ask("list", b""))["data"]["tools"] == []

    clock += 2 * records_module.SWEEP_MS
    await application.offered_tools()
    assert isinstance(application.harness.eventlog.tool_registrations, MemoryRegistrations)
    assert application.harness.eventlog.tool_registrations.values == {}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "not a name"}, "name"),
        ({"subject": "fairlead.app.acme.math"}, "subject"),
        ({"subject": "fairlead.log.default.0.ses_1"}, "subject"),
        ({"subject": "fairlead.app.default.*"}, "subject"),
        ({"mode": "queue"}, "subject"),
        ({"inputSchema": {"type": "array"}}, None),
        ({"inputSchema": {"type": "object", "$ref": "http://x"}}, None),
        ({"outputSchema": {"type": "nothing"}}, None),
        ({"timeoutMs": 0}, "timeoutMs"),
        ({"timeoutMs": 7_200_000}, None),
        ({"retry": "sometimes"}, "retry"),
        ({"location": None}, None),
    ],
)
async def test_what_cannot_be_registered_is_refused_and_leaves_nothing(
    application: ApplicationTools, change: dict[str, object], field: str | None
) -> None:
    """J-01, J-39: the typed error names the field, and a tenant may use its own subjects only."""
    answer = await application.ask("register", {**DOUBLE, **change})

    assert answer["error"]["_tag"] == "InvalidRequestError"
    assert answer["error"].get("field") == field
    assert await application.offered_tools() == {}


async def test_a_tenant_registers_so_many_and_no_more(
    application: ApplicationTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-39."""
    monkeypatch.setattr(records_module, "TOOLS_MAX", 1)
    await application.ask("register", DOUBLE)

    refusal = await application.ask("register", {**DOUBLE, "name": "another"})

    assert refusal["error"]["_tag"] == "TooManyError"
    assert "data" in await application.ask("register", {**DOUBLE, "description": "changed"})


async def failures(application: ApplicationTools) -> list[ToolFailed]:
    events = await application.harness.events()
    return [event for event in events if isinstance(event, ToolFailed)]


async def queue_call(application: ApplicationTools, **change: object) -> ToolTask:
    """Put a call into the queue of its service, and return the task."""
    await application.ask("register", {**QUEUED, **change})
    await application.call("double", n=4)
    async with run_worker(application.worker):
        await wait_until(lambda: bool(_queue(application).messages))
        await _wait_until_deferred(application)
    return ToolTask.model_validate_json(_queue(application).messages[0].payload)


def _queue(application: ApplicationTools) -> Any:  # noqa: ANN401
    assert isinstance(application.harness.eventlog.work, MemoryWorkQueues)
    return application.harness.eventlog.work.queue("JOBS")


async def _wait_until_deferred(application: ApplicationTools) -> None:
    async with asyncio.timeout(5):
        while not any(
            isinstance(event, ToolDeferred) for event in await application.harness.events()
        ):
            await asyncio.sleep(0)


def _settlement(task: ToolTask, **result: object) -> dict[str, object]:
    return {
        "sessionID": task.session_id,
        "assistantMessageID": task.assistant_message_id,
        "callID": task.call_id,
        **result,
    }


async def test_a_queued_call_holds_no_worker_and_is_settled_from_outside(
    application: ApplicationTools,
) -> None:
    """J-09, D6: no request waits for its deadline, and a second settlement is a conflict."""
    task = await queue_call(application)
    assert task.deadline is not None
    assert await application.harness.settlements() == []
    assert application.harness.jobs == []

    answer = await application.ask("settle", _settlement(task, output={"n": 8}))
    again = await application.ask("settle", _settlement(task, output={"n": 9}))

    assert answer["data"]["callID"] == "call_1"
    assert again["error"]["_tag"] == "ConflictError"
    assert await application.harness.settlements() == ["{'n': 8}"]
    assert len(application.harness.wakes) == 1


def _timer(application: ApplicationTools) -> int:
    """When the session's timer fires, without the margin for late clocks."""
    timers = application.harness.eventlog.timers
    assert isinstance(timers, MemoryTimers)
    return timers.times[AT] - DEADLINE_MARGIN_MS


async def test_a_timer_brings_a_queued_call_back_at_its_deadline(
    application: ApplicationTools,
) -> None:
    """D6: the request is acknowledged as soon as the log and the timer have the deadline."""
    task = await queue_call(application)

    assert _timer(application) == task.deadline
    assert application.harness.jobs == []


async def test_a_worker_that_dies_before_it_set_the_timer_leaves_its_request(
    application: ApplicationTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says that the call is deferred. The next delivery sets the timer and acknowledges."""
    timers = application.harness.eventlog.timers
    with monkeypatch.context() as patched:

        async def refuse(*_: object) -> None:
            raise LogUnavailable("the worker died here")

        patched.setattr(timers, "wake_at", refuse)
        task = await queue_call(application)
    (job,) = application.harness.jobs

    job.expire()
    await application.serve_all()

    assert _timer(application) == task.deadline
    assert application.harness.jobs == []
    assert len(_queue(application).messages) == 1, "the service has the call once"


async def test_a_worker_that_dies_after_it_set_the_timer_leaves_a_request_that_does_nothing(
    application: ApplicationTools,
) -> None:
    task = await queue_call(application)

    await application.harness.put()
    await application.serve_all()

    assert _timer(application) == task.deadline
    assert await application.harness.settlements() == []
    assert len(_queue(application).messages) == 1


async def test_the_timer_is_set_to_the_deadline_of_the_next_queued_call(
    application: ApplicationTools,
) -> None:
    """A session has one timer: the first deadline counts, and then the next one."""
    first = await queue_call(application, timeoutMs=60_000)
    await application.ask("register", {**QUEUED, "timeoutMs": 600_000, "description": "slower"})
    await application.call("double", id_="call_2", n=5)
    await application.serve_all()
    second = ToolTask.model_validate_json(_queue(application).messages[1].payload)
    before = _timer(application)

    await application.ask("settle", _settlement(first, output={"n": 8}))

    assert (before, _timer(application)) == (first.deadline, second.deadline)


@pytest.mark.parametrize("retry", ["once", "idempotent", "pure"])
async def test_a_service_may_be_quicker_than_the_worker_that_left_it_the_call(
    application: ApplicationTools, retry: str
) -> None:
    """J-09: the answer precedes the deferral in the log, and a conflict would lose it."""
    await application.ask("register", {**QUEUED, "retry": retry})
    await application.call("double", n=4)
    settlement_tasks: list[asyncio.Task[dict[str, Any]]] = []

    async def settle_early(_drafts: tuple[Draft, ...]) -> None:
        if not settlement_tasks and _queue(application).messages:
            task = ToolTask.model_validate_json(_queue(application).messages[0].payload)
            settle_request = application.ask("settle", _settlement(task, output={"n": 8}))
            settlement_tasks.append(asyncio.create_task(settle_request))
            await asyncio.sleep(0.02)

    application.harness.log.before = settle_early
    async with run_worker(application.worker):
        await wait_until(lambda: bool(settlement_tasks))
        answer = await settlement_tasks[0]

    assert answer.get("data") == {"sessionID": "ses_1", "callID": "call_1"}
    assert await application.harness.settlements() == ["{'n': 8}"]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"error": {"message": "not today"}}, "not today"),
        ({"output": {"n": "x"}}, "Tool execution failed: Invalid tool output: n: 'x'"),
    ],
)
async def test_a_settlement_is_checked_like_any_other_result(
    application: ApplicationTools, result: dict[str, object], message: str
) -> None:
    """J-18, J-20."""
    task = await queue_call(application)

    await application.ask("settle", _settlement(task, **result))

    (settlement,) = await application.harness.settlements()
    assert settlement.startswith(message)


async def test_a_settlement_from_outside_is_bounded_and_kept_like_any_other(
    application: ApplicationTools,
) -> None:
    """J-24, J-26, J-30: the log holds the same outcome as for a call that a worker settles."""
    task = await queue_call(application)
    text = "".join(f"{number}\n" for number in range(5000))
    result = {"output": {"n": 8}, "content": [{"type": "text", "text": text}]}

    await application.ask("settle", _settlement(task, **result))

    await _check_bounded(application, text)


async def test_an_answer_is_bounded_and_kept_like_any_other(application: ApplicationTools) -> None:
    """J-24, J-26, J-30."""
    text = "".join(f"{number}\n" for number in range(5000))

    async def answer(_body: bytes) -> bytes:
        result = {"output": {"n": 8}, "content": [{"type": "text", "text": text}]}
        return json.dumps(result).encode()

    await application.ask("register", DOUBLE)
    application.serve(DOUBLE["subject"], answer)
    await application.call("double", n=4)
    await application.serve_all()

    await _check_bounded(application, text)


async def _check_bounded(application: ApplicationTools, text: str) -> None:
    events = await application.harness.events()
    (event,) = [event for event in events if isinstance(event, ToolSucceeded)]
    (text_part,) = event.content
    assert isinstance(text_part, TextContent)
    assert text_part.text.count("\n") < LINES_MAX
    (path,) = event.output_paths or ()
    outputs = application.harness.eventlog.outputs
    assert isinstance(outputs, MemoryOutputs)
    assert outputs.outputs["default", managed_id(path) or ""][0].decode() == text


@pytest.mark.parametrize("registration", [DOUBLE, QUEUED])
async def test_a_tool_of_others_is_asked_about_and_denied_like_ours(
    application: ApplicationTools, registration: dict[str, Any]
) -> None:
    """K-02, K-05, K-12: nothing is sent before a person permits it."""
    await application.ask("register", {**registration, "action": "sums"})
    await application.call("double", n=4)

    assert await _settlements_with_rule(application, "ask") == []
    (ask,) = [
        event for event in await application.harness.events() if isinstance(event, PermissionAsked)
    ]
    assert (ask.request.action, ask.request.save) == ("app:sums", ("*",))
    assert _queue(application).messages == []

    await application.call("double", id_="call_2", n=4)
    (settlement,) = await _settlements_with_rule(application, "deny")
    assert settlement.startswith("Permission denied: app:sums")


async def _settlements_with_rule(application: ApplicationTools, effect: str) -> list[str]:
    """Run a worker under a rule with this effect, and return the settlements."""
    rule = {"action": "app:sums", "resource": "*", "effect": effect}
    rules = Config.model_validate({"permissions": [rule]}).rules
    harness = application.harness
    worker = ToolWorker(
        "wkr_a", harness.eventlog, harness.registry, harness.settings, CallPolicy(rules)
    )
    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)
    return await harness.settlements()


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
async def test_a_registration_never_takes_the_name_of_a_built_in_tool(
    application: ApplicationTools, name: str
) -> None:
    """B9: a tool that shadows `bash` would get the calls and the permissions of `bash`."""
    answer = await application.ask("register", {**DOUBLE, "name": name})

    assert answer["error"]["_tag"] == "InvalidRequestError"
    assert "built-in tool" in answer["error"]["message"]


def test_every_built_in_tool_has_a_reserved_name() -> None:
    """B9: a new built-in tool reserves its name at once."""
    search = {"websearch": {"any": {"url": "http://127.0.0.1/"}}}
    offered = {tool.name for tool in builtins(Config.model_validate({"tools": search}))}

    assert offered <= RESERVED_NAMES
    assert RESERVED_NAMES - offered <= {"skill", "task", "websearch"}


async def test_the_action_of_a_registration_fits_no_rule_for_a_built_in_tool(
    application: ApplicationTools,
) -> None:
    """B9: a registration that names the action `read` is not permitted by a rule for `read`."""
    await application.ask("register", {**DOUBLE, "action": "read"})

    await application.harness.registry.refresh(ANYWHERE, sure=True)
    tool = application.harness.registry.find("double")

    assert tool is not None
    assert tool.permission == "app:read"


async def test_an_interrupt_ends_a_call_that_waits_in_a_queue(
    application: ApplicationTools,
) -> None:
    """E-16: its request is acknowledged, and a later settlement is a conflict."""
    task = await queue_call(application)
    await application.harness.write(
        InterruptRequested(),
        ToolFailed(
            assistant_message_id=task.assistant_message_id,
            call_id=task.call_id,
            error=ErrorInfo(message=INTERRUPTED_TOOL),
            provider=Executor(),
        ),
    )

    late = await application.ask("settle", _settlement(task, output={"n": 8}))

    assert late["error"]["_tag"] == "ConflictError"
    assert await application.serve_all() == [INTERRUPTED_TOOL]


async def test_a_settlement_comes_back_after_the_tool_changed(
    application: ApplicationTools,
) -> None:
    """J-09: the call started before the change, so no schema checks its output."""
    task = await queue_call(application)
    await application.ask("unregister", {"name": "double"})

    await application.ask("settle", _settlement(task, output={"anything": 1}))

    assert await application.harness.settlements() == ["{'anything': 1}"]


async def test_only_a_call_that_waits_in_a_queue_is_settled_from_outside(
    harness: Harness,
) -> None:
    """J-02: running calls, unknown calls and calls of another tenant stay unsettled."""
    application = application_tools(harness, read_pauses_s=(0.0,))
    gate = tool("gate")
    application.harness.registry.register(gate)
    await application.harness.call(gate)
    task = ToolTask.model_validate_json(
        json.dumps(
            {
                **_settlement_ids(),
                "tenant": "default",
                "key": "k",
                "tool": "gate",
                "input": {},
                "agent": "build",
                "location": {"directory": "/w"},
            }
        )
    )

    for tenant in ("default", "acme"):
        refusal = await application.ask("settle", _settlement(task, output={}), tenant)
        assert refusal["error"]["_tag"] == "ConflictError"


def _settlement_ids() -> dict[str, str]:
    return {"sessionID": "ses_1", "assistantMessageID": "msg_a", "callID": "call_1"}


async def test_a_queued_call_that_nobody_answers_is_settled_when_its_time_is_up(
    application: ApplicationTools,
) -> None:
    """J-20: the outcome is unknown, and a later answer is a conflict.

    The timer wakes the session at the deadline, and its runner requests the call.
    """
    task = await queue_call(application, timeoutMs=1)
    await asyncio.sleep(0.01)

    await application.harness.put()
    await application.serve_all()

    (failure,) = await failures(application)
    assert "its outcome is unknown" in failure.error.message
    assert failure.error.outcome == "unknown"
    late = await application.ask("settle", _settlement(task, output={"n": 8}))
    assert late["error"]["_tag"] == "ConflictError"


@pytest.mark.parametrize("body", [b"rubbish", b"[]", b"{}", b'{"name": null}'])
async def test_what_is_no_registration_is_refused_with_a_typed_error(
    application: ApplicationTools, body: bytes
) -> None:
    """J-01."""
    assert (await application.ask("register", body))["error"]["_tag"] == "InvalidRequestError"
    assert (await application.ask("register", DOUBLE, "no tenant"))["error"]["_tag"] == (
        "InvalidRequestError"
    )
