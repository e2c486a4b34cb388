"""The registry: names, layers, order and revisions; and the catalogue on the wire."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from fairlead_schema.location import LocationRef
from fairlead_schema.tools.request import ListTools, ToolCatalog
from fairlead_service.config.configuration import Config
from fairlead_tools.app import build_registry, list_tools
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallContext, InvalidTool, Tool
from fairlead_tools.settings import ToolsSettings
from services.tools.tests.conftest import EchoInput, EchoOutput, answer_of, tool


class WiderInput(EchoInput):
    more: int = 0


class ModelWithoutSchema(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    registry: Registry


async def echo_twice(request: EchoInput, _context: CallContext) -> EchoOutput:
    return EchoOutput(said=request.key * 2)


@pytest.mark.parametrize("name", ["a", "A9_-", "x" * 64])
def test_a_name_that_providers_take_is_registered(name: str) -> None:
    """J-01: a letter, then letters, digits, underscores and dashes; 64 at most."""
    registry = Registry()
    registry.register(tool(name))

    assert [tool.name for tool in registry.catalog().tools] == [name]


@pytest.mark.parametrize("name", ["", "9a", "_a", "a b", "a.b", "é", "x" * 65, "a\n"])
def test_another_name_is_refused_and_leaves_nothing(name: str) -> None:
    """J-01: registration fails."""
    registry = Registry()

    with pytest.raises(InvalidTool):
        registry.register(tool(name))

    assert registry.catalog() == ToolCatalog(tools=())


@pytest.mark.parametrize(
    "bad_tool", [tool(timeout_s=0), tool(input=ModelWithoutSchema), tool(output=ModelWithoutSchema)]
)
def test_what_cannot_be_advertised_or_bounded_is_refused(bad_tool: Tool) -> None:
    """J-01: the refusal comes at registration."""
    with pytest.raises(InvalidTool):
        Registry().register(bad_tool)


def test_the_latest_registration_answers_and_its_removal_reveals_the_previous() -> None:
    """J-03, J-04, J-38: a shadow keeps the place in the order; a second removal is no change."""
    registry, first, second = Registry(), tool("a"), tool("a", description="second")
    below = registry.register(first)
    registry.register(tool("b"))
    above = registry.register(second)
    assert [tool.description for tool in registry.catalog().tools] == ["second", "b"]

    registry.remove(above)
    registry.remove(above)
    assert registry.find("a") is first
    registry.remove(below)

    assert [tool.name for tool in registry.catalog().tools] == ["b"]
    assert registry.find("a") is None


def test_a_revision_is_the_same_wherever_the_content_is() -> None:
    """J-06: workers of one pool agree on it, and any change gives a new revision."""
    original = tool()
    changes = (
        {"name": "other"},
        {"description": "other"},
        {"input": WiderInput},
        {"output": WiderInput},
        {"execute": echo_twice},
        {"retry": "pure"},
        {"timeout_s": 1.0},
        {"version": "2"},
    )

    revisions = {replace(original, **change).info.revision for change in changes}

    assert tool().info.revision == original.info.revision
    assert len(revisions | {original.info.revision}) == len(changes) + 1


async def list_answer(registry: Registry, body: bytes) -> dict[str, Any]:
    return await answer_of(ListTools, body, lambda command: list_tools(registry, command))


async def test_the_catalogue_is_answered_as_data() -> None:
    """J-02: the answer has the tools of a turn, with the schema that the model sees."""
    registry = Registry()
    registry.register(tool(retry="pure"))
    request = ListTools(location=LocationRef(directory="/w"), agent="build")

    body = await list_answer(registry, request.model_dump_json(by_alias=True).encode())

    (info,) = body["data"]["tools"]
    assert (info["name"], info["retry"]) == ("echo", "pure")
    assert info["inputSchema"]["properties"]["key"]["type"] == "string"
    assert ToolCatalog.model_validate(body["data"]) == registry.catalog()


@pytest.mark.parametrize("body", [b"", b"{}", b'{"location": 3}', b"\xff"])
async def test_what_is_no_question_is_refused_with_a_typed_error(body: bytes) -> None:
    """J-17: malformed input gets a typed error."""
    answer = await list_answer(Registry(), body)

    assert answer["error"]["_tag"] == "InvalidRequestError"


def test_probes_are_there_only_when_the_configuration_says_so() -> None:
    """J-10: nobody calls a probe by accident."""
    off = Config.model_validate({"tools": {"builtin": False}})
    on = Config.model_validate({"tools": {"builtin": False, "probes": True}})

    def probes(config: Config) -> list[str]:
        tools = build_registry(ToolsSettings(config)).catalog().tools
        return [tool_info.name for tool_info in tools if tool_info.name.startswith("probe_")]

    assert probes(off) == []
    assert probes(on) == [
        "probe_pure",
        "probe_idempotent",
        "probe_once",
        "probe_crash",
        "probe_slow",
    ]
