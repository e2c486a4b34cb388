"""Scopes of the registry: places before everywhere, tenants apart, atomic changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_schema.tools.request import ToolInfo
from fairlead_session.calls.lifecycle import Failed
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.registry.registry import PreparedCall, Registration, Registry, Scope
from fairlead_tools.registry.tool import InvalidTool, Tool
from services.tools.tests.conftest import Gate, Harness, run_worker, tool, wait_until

HERE, THERE = Scope("default", "/here"), Scope("default", "/there")


def unsettled_call(info: ToolInfo) -> UnsettledCall:
    return UnsettledCall(
        assistant_message_id="msg_a",
        call_id="call_1",
        tool=info.name,
        input={},
        agent="build",
        retry=info.retry,
        revision=info.revision,
        called_seq=1,
    )


def descriptions(registry: Registry, scope: Scope = HERE) -> list[str]:
    return [tool.description for tool in registry.catalog(scope).tools]


def prepare_message(registry: Registry, advertised_tool: Tool, scope: Scope = HERE) -> str:
    outcome = registry.prepare(unsettled_call(advertised_tool.info), scope)
    return outcome.message if isinstance(outcome, Failed) else outcome.tool.description


def test_a_place_comes_before_everywhere_whenever_it_was_registered() -> None:
    """J-03: within each scope the latest registration answers."""
    registry = Registry()
    registry.register(tool("a", description="here"), directory="/here")
    registry.register(tool("a", description="everywhere"))
    registry.register(tool("a", description="everywhere later"))
    assert (descriptions(registry), descriptions(registry, THERE)) == (
        ["here"],
        ["everywhere later"],
    )

    registry.register(tool("a", description="here later"), directory="/here")

    assert descriptions(registry) == ["here later"]


def test_a_removed_registration_reveals_what_it_shadowed() -> None:
    """J-04: the removal affects this registration only."""
    registry = Registry()
    registry.register(tool("a", description="everywhere"))
    first = registry.register(tool("a", description="one"), directory="/here")
    second = registry.register(tool("a", description="two"), directory="/here")

    registry.remove(first)
    assert descriptions(registry) == ["two"]
    registry.remove(second)

    assert descriptions(registry) == ["everywhere"]


def test_everywhere_is_advertised_first_and_a_shadow_keeps_its_place() -> None:
    """J-38: within a scope the order is that of registration."""
    registry = Registry()
    registry.register(tool("z"), directory="/here")
    registry.register(tool("a"))
    registry.register(tool("b"))
    registry.register(tool("a", description="a here"), directory="/here")

    assert descriptions(registry) == ["a here", "b", "z"]
    assert descriptions(registry, THERE) == ["a", "b"]


def test_a_removed_tool_is_stale_and_so_is_a_replaced_one() -> None:
    """J-05, J-06: other names stay valid. J-10: a tool never advertised is unknown."""
    registry, first, other = Registry(), tool("a", description="one"), tool("b")
    registration = registry.register(first)
    registry.register(other)
    registry.register(tool("a", description="two"))

    assert prepare_message(registry, first) == "Stale tool call: a"
    assert prepare_message(registry, other) == "b"
    registry.remove(registration)
    assert prepare_message(registry, registration.tool) == "Stale tool call: a"
    never = registry.prepare(
        UnsettledCall("msg_a", "call_1", "c", {}, "build", "once", revision=None, called_seq=1)
    )
    assert never == Failed("Unknown tool: c")


def test_a_revealed_tool_is_stale_for_who_was_offered_the_shadow() -> None:
    """J-07, J-08: a tool that a place shadows or reveals in between is stale too."""
    registry, below, above = (
        Registry(),
        tool("a", description="below"),
        tool("a", description="above"),
    )
    registry.register(below)
    shadow = registry.register(above, directory="/here")

    assert prepare_message(registry, below) == "Stale tool call: a"
    assert prepare_message(registry, above) == "above"
    assert prepare_message(registry, below, THERE) == "below"
    registry.remove(shadow)

    assert prepare_message(registry, above) == "Stale tool call: a"
    assert prepare_message(registry, below) == "below"


def test_two_processes_agree_on_what_is_stale() -> None:
    """J-02, J-06: a revision depends on content, so either may run what the other advertised."""
    first, second = Registry(), Registry()
    first.register(tool("a"))
    second.register(tool("a"))

    (tool_info,) = first.catalog().tools

    assert isinstance(second.prepare(unsettled_call(tool_info)), PreparedCall)


async def test_a_call_that_runs_goes_on_whatever_is_registered(harness: Harness) -> None:
    """J-09: the result comes from the tool that started."""
    gate = Gate()
    running = tool(execute=gate)
    registration = harness.registry.register(running)
    await harness.call(running)

    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(gate.runs))
        harness.registry.register(tool("echo", description="another"))
        harness.registry.remove(registration)
        gate.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await harness.settlements() == ["{'said': 'k'}"]


def test_tenants_do_not_see_each_other() -> None:
    """J-15: the tools of a tenant are offered and called for that tenant only."""
    registry, theirs = Registry(), tool("a", description="theirs", action="edit")
    registry.register(tool("a", description="everybody's"))
    registry.register(theirs, tenant="acme")
    acme = Scope("acme", "/here")

    assert (descriptions(registry), descriptions(registry, acme)) == (["everybody's"], ["theirs"])
    assert prepare_message(registry, theirs) == "Stale tool call: a"
    tools = (registry.find("a", HERE), registry.find("a", acme))
    assert [found_tool and found_tool.permission for found_tool in tools] == ["a", "edit"]


def test_who_has_a_seat_of_its_own_does_not_see_everybodys() -> None:
    """J-15: credentials of other tenants never serve this one."""
    registry = Registry()
    registry.replace_owned(
        "x", [Registration(tool("a"), owner="x", except_tenants=frozenset({"acme"}))]
    )

    assert (descriptions(registry), descriptions(registry, Scope("acme", "/here"))) == (["a"], [])


def test_definitions_are_made_once() -> None:
    """J-16: every turn and place gets the same value."""
    registry = Registry()
    registry.register(tool("a"))

    (first,), (second,) = registry.catalog(HERE).tools, registry.catalog(THERE).tools

    assert first is second


def test_what_cannot_be_registered_changes_nothing() -> None:
    """J-39: a replacement registers all tools of an owner or none."""
    registry = Registry()
    registry.replace_owned("x", [Registration(tool("a"), owner="x")])

    with pytest.raises(InvalidTool):
        registry.replace_owned(
            "x", [Registration(tool(name), owner="x") for name in ("b", "not a name")]
        )

    assert descriptions(registry) == ["a"]
    registry.replace_owned("x", ())
    assert descriptions(registry) == []


@settings(max_examples=50)
@given(st.permutations(["x", "y", "z"]))
def test_the_order_is_that_of_ranks_and_not_of_arrival(arrival: list[str]) -> None:
    """J-38: two workers advertise the same order, so that a provider's cache holds."""
    registry = Registry()
    ranks = {"x": 1, "y": 2, "z": 3}
    for owner in arrival:
        names = (owner, "shared")
        registry.replace_owned(
            owner,
            [
                Registration(
                    tool(name, description=f"{name} {owner}"), owner=owner, rank=ranks[owner]
                )
                for name in names
            ],
        )

    assert descriptions(registry) == ["x x", "shared z", "y y", "z z"]
