"""Permission before a call begins: allowed, denied, or asked for. No worker waits for the answer."""

import tempfile
from dataclasses import replace

import pytest

from fairlead_eventlog.ports import CommitPage, Head
from fairlead_eventlog.process_life import Nudge
from fairlead_schema.events import (
    AgentSwitched,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    ToolStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import Effect, PermissionRule
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ListTools
from fairlead_service.config.configuration import Config
from fairlead_session.people.permission import Need, effect
from fairlead_tools.app import list_tools
from fairlead_tools.calls import worker
from fairlead_tools.calls.permission import UNPERMITTED, CallPolicy
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallContext, CallFailed, Needs, Tool
from services.tools.tests.conftest import AT, EchoInput, Gate, Harness, run_worker, tool, wait_until


def rule(action: str, resource: str = "*", effect: Effect = "ask") -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=effect)


def config_with(*rules: PermissionRule, **agents: object) -> Config:
    return Config.model_validate(
        {
            "permissions": [rule_.model_dump() for rule_ in rules],
            "agent": agents,
            "location": {"roots": ["/"]},
        }
    )


async def serve(harness: Harness, config: Config, name: str = "wkr_a") -> list[str]:
    """Run one worker with these rules until no request is left; the settlements of all calls."""
    harness.liveness.alive.add(name)
    worker = ToolWorker(
        name, harness.eventlog, harness.registry, harness.settings, CallPolicy(config.rules)
    )
    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)
    return await harness.settlements()


async def asks(harness: Harness) -> list[PermissionAsked]:
    return [event for event in await harness.events() if isinstance(event, PermissionAsked)]


def register(harness: Harness, new_tool: Tool) -> Tool:
    harness.registry.register(new_tool)
    return new_tool


async def test_a_call_that_needs_a_person_is_asked_about_and_given_up(harness: Harness) -> None:
    """K-12, K-13, K-14: the ask is durable, the request acknowledged, and nothing has begun."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)

    assert await serve(harness, config_with(rule("echo"))) == []

    (ask,) = await asks(harness)
    assert (ask.request.action, ask.request.resources) == ("echo", ("*",))
    assert (ask.request.save, ask.agent) == (("*",), "build")
    assert (harness.jobs, harness.wakes, await harness.starts()) == ([], [], [])


async def test_a_request_that_comes_again_asks_nobody_twice(harness: Harness) -> None:
    """K-24: the first worker died after the ask and before the acknowledgement."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))
    for name in ("wkr_b", "wkr_c"):
        await harness.put()
        await serve(harness, config_with(rule("echo")), name)

    assert len(await asks(harness)) == 1
    assert await harness.starts() == []


async def test_a_permitted_call_runs_when_its_request_comes_again(harness: Harness) -> None:
    """K-15: the answer belongs to the call, and any worker may use it."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))
    (ask,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=ask.request.id, reply="once"))
    await harness.put()

    assert await serve(harness, config_with(rule("echo")), "wkr_b") == ["{'said': 'k'}"]
    assert await harness.starts() == ["wkr_b"]
    assert len(await asks(harness)) == 1


async def test_the_request_that_an_answer_brought_is_not_dropped_because_a_read_lags_behind(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-15, A1: a replica that does not know the answer yet proves nothing."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))
    (ask,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=ask.request.id, reply="once"))
    job, read, stale_reads = await harness.put(), harness.log.read, [True, True]
    last = await harness.log.last_commit_position(AT)

    async def lag(at: Address, *, after: Head, limit: int = 500, reach: int = 0) -> CommitPage:
        page = await read(at, after=after, limit=limit, reach=reach)
        known = tuple(stored for stored in page.commits if stored.position < last)
        is_stale = not reach and stale_reads and stale_reads.pop()
        return CommitPage(known, more=False) if is_stale else page

    monkeypatch.setattr(harness.log, "read", lag)

    assert await serve(harness, config_with(rule("echo")), "wkr_b") == ["{'said': 'k'}"]
    assert job.deliveries == 1


async def test_an_answer_may_come_before_the_request_that_asked_is_done_with(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-15: the answer's request reaches the same worker, which does not drop it as a duplicate."""
    echo_tool = register(harness, tool())
    first = await harness.call(echo_tool)
    ack = first.ack

    async def late() -> None:
        (ask,) = await asks(harness)
        await harness.write(PermissionReplied(request_id=ask.request.id, reply="once"))
        second = await harness.put()
        await wait_until(lambda: second.deliveries > 0)
        await ack()

    monkeypatch.setattr(first, "ack", late)

    assert await serve(harness, config_with(rule("echo"))) == ["{'said': 'k'}"]


async def test_a_call_with_two_needs_is_asked_about_each(harness: Harness) -> None:
    """K-27: first for leaving the location, then for the file. Each answer brings the next ask."""

    async def needs(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("external_directory", ("/etc/*",)), Need("read", ("/etc/hosts",)))

    echo_tool = register(harness, tool(needs=needs))
    rules = config_with(rule("external_directory"), rule("read"))
    await harness.call(echo_tool)
    for expected in ("external_directory", "read"):
        await serve(harness, rules)
        ask = (await asks(harness))[-1]
        assert ask.request.action == expected
        await harness.write(PermissionReplied(request_id=ask.request.id, reply="once"))
        await harness.put()

    assert await serve(harness, rules) == ["{'said': 'k'}"]


async def test_a_denied_call_fails_and_the_loop_goes_on(harness: Harness) -> None:
    """E-09: a tool error names the rule, and the session is woken."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)

    settlements = await serve(harness, config_with(rule("echo", effect="deny")))

    assert settlements == ["Permission denied: echo (rule: echo * deny)"]
    assert len(harness.wakes) == 1
    assert (await asks(harness), await harness.starts()) == ([], [])


async def test_a_hidden_tool_is_judged_when_it_is_called_all_the_same(harness: Harness) -> None:
    """J-14: a hidden tool is denied when it is called, too."""
    echo_tool = register(harness, tool())
    config = config_with(rule("echo", effect="deny"))
    assert harness.registry.catalog(rules=config.rules("build")).tools == ()
    await harness.call(echo_tool)

    assert (await serve(harness, config))[0].startswith("Permission denied: echo")


async def test_an_approval_of_the_project_answers_before_anybody_is_asked(harness: Harness) -> None:
    """K-07, K-16: saved for this project by any of its sessions."""
    echo_tool = register(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "p", "echo", ["*"])
    await harness.call(echo_tool)

    assert await serve(harness, config_with(rule("echo"))) == ["{'said': 'k'}"]
    assert await asks(harness) == []


async def test_an_approval_of_another_project_answers_nothing(harness: Harness) -> None:
    """K-16: nor does one of another tenant."""
    echo_tool = register(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "q", "echo", ["*"])
    await harness.eventlog.approvals.save("other", "p", "echo", ["*"])
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))

    assert len(await asks(harness)) == 1


async def test_an_approval_never_overrides_a_denial(harness: Harness) -> None:
    """K-06: each delivery checks denials first."""
    echo_tool = register(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "p", "echo", ["*"])
    await harness.call(echo_tool)

    settlements = await serve(harness, config_with(rule("echo", effect="deny")))

    assert settlements == ["Permission denied: echo (rule: echo * deny)"]


async def test_a_denial_that_comes_after_the_permission_still_counts(harness: Harness) -> None:
    """K-06: the rules at the begin of the call decide, not those at the time of the ask."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))
    (ask,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=ask.request.id, reply="always"))
    await harness.put()

    settlements = await serve(harness, config_with(rule("echo", effect="deny")))

    assert settlements == ["Permission denied: echo (rule: echo * deny)"]


async def test_the_agent_of_the_turn_decides_not_the_sessions_own(harness: Harness) -> None:
    """K-08, K-09: build made the call; the rules of plan, chosen since, do not count."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    await harness.write(AgentSwitched(message_id="msg_s", agent="plan"))
    denying_agent = {"permissions": [rule("echo", effect="deny").model_dump()]}

    assert await serve(harness, config_with(plan=denying_agent)) == ["{'said': 'k'}"]


async def test_a_call_of_an_agent_that_is_not_there_is_denied(harness: Harness) -> None:
    """K-11: an unknown agent may do nothing."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)

    settlements = await serve(
        harness,
        Config.model_validate({"agent": {"build": {"disabled": True}}, "default_agent": "plan"}),
    )

    assert settlements == ["Permission denied: echo (rule: * * deny)"]


async def test_needs_that_cannot_be_met_fail_the_call_in_the_tools_words(harness: Harness) -> None:
    """J-20: a declared failure keeps its message; a crash says that it is a crash."""

    async def refuses(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        raise CallFailed("no such file")

    async def crashes(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        raise RuntimeError("boom")

    first = register(harness, tool("first", needs=refuses))
    second = register(harness, tool("second", needs=crashes))
    await harness.call(first, id_="call_1")
    await harness.call(second, id_="call_2")

    settlements = await serve(harness, Config())

    assert sorted(settlements) == ["Tool execution failed: boom", "no such file"]


async def test_needs_that_take_for_ever_fail_the_call(harness: Harness) -> None:
    """J-20: the check for permissions has a time limit too."""
    gate = Gate()

    async def hangs(request: EchoInput, context: CallContext) -> tuple[Need, ...]:
        await gate(request, context)
        return ()

    echo_tool = register(harness, tool(needs=hangs, timeout_s=0.01))
    await harness.call(echo_tool)

    assert await serve(harness, Config()) == ["Tool execution failed: no answer within 0.01 s"]


async def test_an_interrupt_that_comes_while_it_is_judged_asks_nobody(harness: Harness) -> None:
    """K-26: the log decides: no ask is written for an interrupted call."""
    echo_tool = register(harness, tool())
    await harness.call(echo_tool)
    is_interrupted = False

    async def before(drafts: tuple[Draft, ...]) -> None:
        nonlocal is_interrupted
        if not is_interrupted and isinstance(drafts[0].event, PermissionAsked):
            is_interrupted = True
            await harness.write(InterruptRequested())

    harness.log.before = before
    await serve(harness, config_with(rule("echo")))

    assert is_interrupted
    assert await asks(harness) == []


async def begin_permitted_call(harness: Harness, needs: Needs) -> None:
    """A call that a person permitted once, and whose worker died after the start."""
    echo_tool = register(harness, tool(retry="pure", needs=needs))
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))
    (ask,) = await asks(harness)
    await harness.write(
        PermissionReplied(request_id=ask.request.id, reply="once"),
        ToolStarted(
            assistant_message_id="msg_a", call_id="call_1", worker="wkr_dead", generation=1
        ),
    )
    await harness.put()


async def test_a_call_that_began_before_is_not_asked_about_again(harness: Harness) -> None:
    """K-15: the next worker uses the permission that the dead worker had."""

    async def needs(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", ("a.txt",)),)

    await begin_permitted_call(harness, needs)

    assert await serve(harness, config_with(rule("echo"))) == ["{'said': 'k'}"]
    assert len(await asks(harness)) == 1


async def test_a_call_that_would_do_something_else_now_does_not_run_again(harness: Harness) -> None:
    """K-15, L-05: a link was exchanged after the death, and nobody permitted the new target."""
    leads = ["a.txt", "/etc/passwd"]

    async def needs(_request: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", (leads[0],)),)

    await begin_permitted_call(harness, needs)
    del leads[0]

    assert await serve(harness, config_with(rule("echo"))) == [UNPERMITTED]
    assert len(await asks(harness)) == 1


async def test_a_runner_that_waits_is_told_that_a_person_is_asked(harness: Harness) -> None:
    """K-25: the runner then parks at once."""
    echo_tool, nudges = register(harness, tool()), list[Nudge]()
    await harness.eventlog.liveness.start_answering("run_a", nudges.append)
    await harness.call(echo_tool)
    await serve(harness, config_with(rule("echo")))

    assert [nudge.at for nudge in nudges] == [AT]


def test_edits_share_one_action_and_other_tools_have_their_own() -> None:
    """J-12: the action of a tool may differ from its name."""
    registry = Registry()
    for name in ("edit", "write", "apply_patch"):
        registry.register(tool(name, action="edit"))
    registry.register(tool("read"))
    denying = (rule("*", effect="allow"), rule("edit", effect="deny"))

    assert [info.name for info in registry.catalog(rules=denying).tools] == ["read"]
    assert len(registry.catalog(rules=(*denying, rule("edit", "docs/*", "allow"))).tools) == 4
    assert (
        len(
            registry.catalog(rules=(rule("*", effect="allow"), rule("edit", "src/*", "deny"))).tools
        )
        == 4
    )


def test_the_action_belongs_to_the_registered_value() -> None:
    """J-11, J-13, J-15: the same tool under another action is another registration."""
    registry, denying = Registry(), (rule("*", effect="allow"), rule("edit", effect="deny"))
    plain = tool("change")
    registry.register(plain)
    assert len(registry.catalog(rules=denying).tools) == 1

    shadow = registry.register(replace(plain, action="edit"))
    assert registry.catalog(rules=denying).tools == ()

    registry.remove(shadow)
    assert len(registry.catalog(rules=denying).tools) == 1


async def test_the_catalogue_is_the_agents(harness: Harness) -> None:
    """J-11, K-10, K-11: fully denied tools are not offered. No agent means the default agent."""
    harness.registry.register(tool("question"))
    harness.registry.register(tool("read"))

    async def offered_tools(agent: str | None) -> list[str]:
        command = ListTools(location=LocationRef(directory="/w"), agent=agent)
        catalog = await list_tools(harness.registry, command, Config().rules)
        return [tool.name for tool in catalog.tools if tool.name in {"question", "read"}]

    assert await offered_tools("build") == ["question", "read"]
    assert await offered_tools(None) == ["question", "read"]
    assert await offered_tools("explore") == ["read"]
    assert await offered_tools("ghost") == []


@pytest.mark.parametrize(
    ("agent", "action", "resource", "says"),
    [
        ("build", "bash", "make", "allow"),
        ("build", "external_directory", "/etc/*", "ask"),
        ("build", "external_directory", f"{tempfile.gettempdir()}/*", "allow"),
        ("build", "external_directory", "fairlead-output:/out_1", "allow"),
        ("build", "read", "src/.env", "ask"),
        ("build", "read", ".env.local", "ask"),
        ("build", "read", ".env.example", "allow"),
        ("build", "question", "*", "allow"),
        ("plan", "question", "*", "allow"),
        ("plan", "edit", "src/a.py", "deny"),
        ("plan", "edit", ".fairlead/plans/a.md", "allow"),
        ("general", "question", "*", "deny"),
        ("general", "edit", "src/a.py", "allow"),
        ("explore", "read", "src/a.py", "allow"),
        ("explore", "grep", "x", "allow"),
        ("explore", "edit", "src/a.py", "deny"),
        ("explore", "bash", "ls", "deny"),
        ("explore", "question", "*", "deny"),
    ],
)
def test_what_the_built_in_agents_may(agent: str, action: str, resource: str, says: Effect) -> None:
    """K-29: the default rules, as the core reads them."""
    assert effect(Config().rules(agent), action, resource) == says


def test_a_worker_without_a_configuration_has_the_built_in_rules() -> None:
    """K-29: harmless actions ask nobody."""
    assert effect(worker.DEFAULT_POLICY.rules("build"), "probe_once", "*") == "allow"
