"""The tools that come with the service."""

from fairlead_service.config import Config
from fairlead_tools.builtin import bash
from fairlead_tools.tool import Tool


def builtins(config: Config) -> tuple[Tool, ...]:
    """Every built-in tool, in its advertised order. Raises SandboxUnavailable."""
    return (bash.tool(config.tools),)
