"""The built-in tools in the registry and in the catalogue."""

from fairlead_service.config.configuration import Config
from fairlead_tools.builtin import builtins
from fairlead_tools.registry.registry import Registry


def test_the_file_tools_are_advertised_in_their_order() -> None:
    """L-12, L-29, L-32, L-39, L-60, L-62: their input has the names that models know."""
    registry = Registry()
    for tool in builtins(Config()):
        registry.register(tool)

    inputs = {tool.name: list(tool.input_schema["properties"]) for tool in registry.catalog().tools}
    assert list(inputs.items())[:6] == [
        ("read", ["path", "offset", "limit"]),
        ("write", ["path", "content"]),
        ("edit", ["path", "oldString", "newString", "replaceAll"]),
        ("apply_patch", ["patchText"]),
        ("glob", ["pattern", "path", "limit"]),
        ("grep", ["pattern", "path", "include", "limit"]),
    ]


def test_what_changes_files_runs_once_and_is_one_action() -> None:
    """L-29, L-44: tools that only read or search may run again, on any worker."""
    tools = {tool.name: tool for tool in builtins(Config())}

    assert {name for name, tool in tools.items() if tool.permission == "edit"} == {
        *("write", "edit", "apply_patch")
    }
    assert all(tools[name].retry == "once" for name in ("write", "edit", "apply_patch"))
    assert all(tools[name].retry == "pure" for name in ("read", "glob", "grep"))
