"""The built-in tools, as the configuration asks for them."""

from fairlead_service.config import Tools
from fairlead_tools.builtin import bash
from fairlead_tools.tool import Tool


def builtins(settings: Tools) -> tuple[Tool, ...]:
    """Every built-in tool, in its advertised order. Raises SandboxUnavailable."""
    return (bash.tool(settings),)
