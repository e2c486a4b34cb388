"""Permission before a call begins: allowed, denied, or asked; nobody waits for the answer."""

import tempfile
from dataclasses import replace

import pytest

from fairlead_eventlog.ports import CommitPage, Head
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
from fairlead_tools.calls.permission import UNPERMITTED
from fairlead_tools.calls.worker import ToolWorker
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallContext, CallFailed, Needs, Tool
from services.tools.tests.conftest import AT, EchoInput, Gate, Harness, run_worker, tool, wait_until


def ask(action: str, resource: str = "*", said: Effect = "ask") -> PermissionRule:
    return PermissionRule(action=action, resource=resource, effect=said)


def configured(*rules: PermissionRule, **agents: object) -> Config:
    return Config.model_validate(
        {"permissions": [one.model_dump() for one in rules], "agent": agents}
    )


async def served(harness: Harness, config: Config, name: str = "wkr_a") -> list[str]:
    """Let one worker work, under these rules, until no request is left."""
    harness.liveness.alive.add(name)
    worker = ToolWorker(name, harness.eventlog, harness.registry, harness.settings, config.rules)
    async with run_worker(worker):
        await wait_until(lambda: not harness.jobs)
    return await harness.settlements()


async def asks(harness: Harness) -> list[PermissionAsked]:
    return [event for event in await harness.events() if isinstance(event, PermissionAsked)]


def registered(harness: Harness, made: Tool) -> Tool:
    harness.registry.register(made)
    return made


async def test_a_call_that_needs_a_person_is_asked_about_and_given_up(harness: Harness) -> None:
    """K-12, K-13, K-14: a durable request, the job acknowledged, nothing begun."""
    made = registered(harness, tool())
    await harness.call(made)

    assert await served(harness, configured(ask("echo"))) == []

    (asked,) = await asks(harness)
    assert (asked.request.action, asked.request.resources) == ("echo", ("*",))
    assert (asked.request.save, asked.agent) == (("*",), "build")
    assert (harness.jobs, harness.wakes, await harness.starts()) == ([], [], [])


async def test_a_request_that_comes_again_asks_nobody_twice(harness: Harness) -> None:
    """K-24: the worker died after it asked and before it acknowledged."""
    made = registered(harness, tool())
    await harness.call(made)
    await served(harness, configured(ask("echo")))
    for name in ("wkr_b", "wkr_c"):
        await harness.put()
        await served(harness, configured(ask("echo")), name)

    assert len(await asks(harness)) == 1
    assert await harness.starts() == []


async def test_a_permitted_call_runs_when_its_request_comes_again(harness: Harness) -> None:
    """K-15: the answer is the call's own, for whichever worker is next."""
    made = registered(harness, tool())
    await harness.call(made)
    await served(harness, configured(ask("echo")))
    (asked,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=asked.request.id, reply="once"))
    await harness.put()

    assert await served(harness, configured(ask("echo")), "wkr_b") == ["{'said': 'k'}"]
    assert await harness.starts() == ["wkr_b"]
    assert len(await asks(harness)) == 1


async def test_the_request_that_an_answer_brought_is_not_dropped_because_a_read_lags_behind(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-15: a replica that does not know the answer yet proves nothing."""
    made = registered(harness, tool())
    await harness.call(made)
    await served(harness, configured(ask("echo")))
    (asked,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=asked.request.id, reply="once"))
    job, read, lagging = await harness.put(), harness.log.read, [True, True]

    async def lag(at: Address, *, after: Head, limit: int = 500) -> CommitPage:
        page = await read(at, after=after, limit=limit)
        return CommitPage(page.commits[:-1], more=False) if lagging and lagging.pop() else page

    monkeypatch.setattr(harness.log, "read", lag)

    assert await served(harness, configured(ask("echo")), "wkr_b") == ["{'said': 'k'}"]
    assert job.deliveries == 2


async def test_an_answer_may_come_before_the_request_that_asked_is_done_with(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-15: the request that it brings comes to the same worker, and is not taken for a spare one."""
    made = registered(harness, tool())
    first = await harness.call(made)
    ack = first.ack

    async def late() -> None:
        (asked,) = await asks(harness)
        await harness.write(PermissionReplied(request_id=asked.request.id, reply="once"))
        second = await harness.put()
        await wait_until(lambda: second.deliveries > 0)
        await ack()

    monkeypatch.setattr(first, "ack", late)

    assert await served(harness, configured(ask("echo"))) == ["{'said': 'k'}"]


async def test_a_call_with_two_needs_is_asked_about_each(harness: Harness) -> None:
    """K-27: leaving the location and then the file; each answer brings the call one step on."""

    async def needs(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("external_directory", ("/etc/*",)), Need("read", ("/etc/hosts",)))

    made = registered(harness, tool(needs=needs))
    rules = configured(ask("external_directory"), ask("read"))
    await harness.call(made)
    for expected in ("external_directory", "read"):
        await served(harness, rules)
        asked = (await asks(harness))[-1]
        assert asked.request.action == expected
        await harness.write(PermissionReplied(request_id=asked.request.id, reply="once"))
        await harness.put()

    assert await served(harness, rules) == ["{'said': 'k'}"]


async def test_a_denied_call_fails_and_the_loop_goes_on(harness: Harness) -> None:
    """E-09: an ordinary tool error with the rule's words; the session is woken."""
    made = registered(harness, tool())
    await harness.call(made)

    settled = await served(harness, configured(ask("echo", said="deny")))

    assert settled == ["Permission denied: echo (rule: echo * deny)"]
    assert len(harness.wakes) == 1
    assert (await asks(harness), await harness.starts()) == ([], [])


async def test_a_hidden_tool_is_judged_when_it_is_called_all_the_same(harness: Harness) -> None:
    """J-14: not being shown is not what keeps it from running."""
    made = registered(harness, tool())
    config = configured(ask("echo", said="deny"))
    assert harness.registry.catalog(rules=config.rules("build")).tools == ()
    await harness.call(made)

    assert (await served(harness, config))[0].startswith("Permission denied: echo")


async def test_an_approval_of_the_project_answers_before_anybody_is_asked(harness: Harness) -> None:
    """K-07, K-16: saved for this project, by whatever session."""
    made = registered(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "p", "echo", ["*"])
    await harness.call(made)

    assert await served(harness, configured(ask("echo"))) == ["{'said': 'k'}"]
    assert await asks(harness) == []


async def test_an_approval_of_another_project_answers_nothing(harness: Harness) -> None:
    """K-16: nor does one of another tenant."""
    made = registered(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "q", "echo", ["*"])
    await harness.eventlog.approvals.save("other", "p", "echo", ["*"])
    await harness.call(made)
    await served(harness, configured(ask("echo")))

    assert len(await asks(harness)) == 1


async def test_an_approval_never_overrides_a_denial(harness: Harness) -> None:
    """K-06: a rule that denies is judged first, at every delivery."""
    made = registered(harness, tool())
    await harness.eventlog.approvals.save(AT.tenant, "p", "echo", ["*"])
    await harness.call(made)

    settled = await served(harness, configured(ask("echo", said="deny")))

    assert settled == ["Permission denied: echo (rule: echo * deny)"]


async def test_a_denial_that_comes_after_the_permission_still_counts(harness: Harness) -> None:
    """K-06: the rules in force when it would begin decide, not those when it was asked."""
    made = registered(harness, tool())
    await harness.call(made)
    await served(harness, configured(ask("echo")))
    (asked,) = await asks(harness)
    await harness.write(PermissionReplied(request_id=asked.request.id, reply="always"))
    await harness.put()

    settled = await served(harness, configured(ask("echo", said="deny")))

    assert settled == ["Permission denied: echo (rule: echo * deny)"]


async def test_the_agent_of_the_turn_decides_not_the_sessions_own(harness: Harness) -> None:
    """K-08, K-09: the call was made by build; plan, chosen since, is not asked."""
    made = registered(harness, tool())
    await harness.call(made)
    await harness.write(AgentSwitched(message_id="msg_s", agent="plan"))
    denying = {"permissions": [ask("echo", said="deny").model_dump()]}

    assert await served(harness, configured(plan=denying)) == ["{'said': 'k'}"]


async def test_a_call_of_an_agent_that_is_not_there_is_denied(harness: Harness) -> None:
    """K-11: everything is."""
    made = registered(harness, tool())
    await harness.call(made)

    settled = await served(
        harness,
        Config.model_validate({"agent": {"build": {"disabled": True}}, "default_agent": "plan"}),
    )

    assert settled == ["Permission denied: echo (rule: * * deny)"]


async def test_needs_that_cannot_be_met_fail_the_call_in_the_tools_words(harness: Harness) -> None:
    """J-20: declared failures are told as they are; a crash says that it was one."""

    async def refuses(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        raise CallFailed("no such file")

    async def crashes(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        raise RuntimeError("boom")

    first = registered(harness, tool("first", needs=refuses))
    second = registered(harness, tool("second", needs=crashes))
    await harness.call(first, id_="call_1")
    await harness.call(second, id_="call_2")

    settled = await served(harness, Config())

    assert sorted(settled) == ["Tool execution failed: boom", "no such file"]


async def test_needs_that_take_for_ever_fail_the_call(harness: Harness) -> None:
    """J-20: nothing hangs before it has begun."""
    gate = Gate()

    async def hangs(asked: EchoInput, context: CallContext) -> tuple[Need, ...]:
        await gate(asked, context)
        return ()

    made = registered(harness, tool(needs=hangs, timeout_s=0.01))
    await harness.call(made)

    assert await served(harness, Config()) == ["Tool execution failed: no answer within 0.01 s"]


async def test_an_interrupt_that_comes_while_it_is_judged_asks_nobody(harness: Harness) -> None:
    """K-26: the log decides; the request of a stopped call is never written."""
    made = registered(harness, tool())
    await harness.call(made)
    interrupted = False

    async def before(drafts: tuple[Draft, ...]) -> None:
        nonlocal interrupted
        if not interrupted and isinstance(drafts[0].event, PermissionAsked):
            interrupted = True
            await harness.write(InterruptRequested())

    harness.log.before = before
    await served(harness, configured(ask("echo")))

    assert interrupted
    assert await asks(harness) == []


async def begun(harness: Harness, needs: Needs) -> None:
    """A call that a person permitted once, and whose worker died when it had begun."""
    made = registered(harness, tool(retry="pure", needs=needs))
    await harness.call(made)
    await served(harness, configured(ask("echo")))
    (asked,) = await asks(harness)
    await harness.write(
        PermissionReplied(request_id=asked.request.id, reply="once"),
        ToolStarted(
            assistant_message_id="msg_a", call_id="call_1", worker="wkr_dead", generation=1
        ),
    )
    await harness.put()


async def test_a_call_that_began_before_is_not_asked_about_again(harness: Harness) -> None:
    """K-15: its worker died; whoever takes it on finds the permission used, not missing."""

    async def needs(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", ("a.txt",)),)

    await begun(harness, needs)

    assert await served(harness, configured(ask("echo"))) == ["{'said': 'k'}"]
    assert len(await asks(harness)) == 1


async def test_a_call_that_would_do_something_else_now_does_not_run_again(harness: Harness) -> None:
    """K-15, L-05: a link was exchanged while its worker was dead; that was permitted by nobody."""
    leads = ["a.txt", "/etc/passwd"]

    async def needs(_asked: EchoInput, _context: CallContext) -> tuple[Need, ...]:
        return (Need("echo", (leads[0],)),)

    await begun(harness, needs)
    del leads[0]

    assert await served(harness, configured(ask("echo"))) == [UNPERMITTED]
    assert len(await asks(harness)) == 1


async def test_a_runner_that_waits_is_told_that_a_person_is_asked(harness: Harness) -> None:
    """K-25: so that it parks at once instead of waiting."""
    made, told = registered(harness, tool()), list[Address]()
    await harness.eventlog.liveness.answer_pings("run_a", told.append)
    await harness.call(made)
    await served(harness, configured(ask("echo")))

    assert told == [AT]


def test_edits_share_one_action_and_other_tools_have_their_own() -> None:
    """J-12: a tool may be about another action than its name."""
    made = Registry()
    for name in ("edit", "write", "apply_patch"):
        made.register(tool(name, action="edit"))
    made.register(tool("read"))
    denied = (ask("*", said="allow"), ask("edit", said="deny"))

    assert [one.name for one in made.catalog(rules=denied).tools] == ["read"]
    assert len(made.catalog(rules=(*denied, ask("edit", "docs/*", "allow"))).tools) == 4
    assert (
        len(made.catalog(rules=(ask("*", said="allow"), ask("edit", "src/*", "deny"))).tools) == 4
    )


def test_the_action_belongs_to_the_registered_value() -> None:
    """J-11, J-13, J-15: the same tool under another action is another registration."""
    made, denied = Registry(), (ask("*", said="allow"), ask("edit", said="deny"))
    plain = tool("change")
    made.register(plain)
    assert len(made.catalog(rules=denied).tools) == 1

    shadow = made.register(replace(plain, action="edit"))
    assert made.catalog(rules=denied).tools == ()

    made.remove(shadow)
    assert len(made.catalog(rules=denied).tools) == 1


async def test_the_catalogue_is_the_agents(harness: Harness) -> None:
    """J-11, K-10, K-11: what is wholly denied is not offered; nobody named is the default agent."""
    harness.registry.register(tool("question"))
    harness.registry.register(tool("read"))

    async def offered(agent: str | None) -> list[str]:
        command = ListTools(location=LocationRef(directory="/w"), agent=agent)
        catalog = await list_tools(harness.registry, command, Config().rules)
        return [tool.name for tool in catalog.tools if tool.name in {"question", "read"}]

    assert await offered("build") == ["question", "read"]
    assert await offered(None) == ["question", "read"]
    assert await offered("explore") == ["read"]
    assert await offered("ghost") == []


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
        ("build", "plan_exit", "*", "deny"),
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
    """K-29: their rules as the core reads them."""
    assert effect(Config().rules(agent), action, resource) == says


def test_a_worker_without_a_configuration_has_the_built_in_rules() -> None:
    """K-29: nothing harmless asks."""
    assert effect(worker.DEFAULT_RULES("build"), "probe_once", "*") == "allow"
