"""The tools that come with the service."""

from fairlead_tools.builtin import apply_patch, edit, glob, grep, read, write
from fairlead_tools.tool import Tool


def builtins() -> tuple[Tool, ...]:
    """Every built-in tool, in the order in which they are advertised."""
    return (
        read.tool(),
        write.tool(),
        edit.tool(),
        apply_patch.tool(),
        glob.tool(),
        grep.tool(),
    )
