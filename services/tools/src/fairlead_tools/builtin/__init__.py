"""The built-in tools."""

from fairlead_service.config.configuration import Config
from fairlead_tools.builtin import (
    apply_patch,
    bash,
    edit,
    glob,
    grep,
    question,
    read,
    todowrite,
    webfetch,
    websearch,
    write,
)
from fairlead_tools.files.image import ImageLimits
from fairlead_tools.outputs import ManagedOutputs
from fairlead_tools.private_directory import PrivateDirectory, open_private_directory
from fairlead_tools.registry.tool import Tool


def builtins(config: Config, private: PrivateDirectory | None = None) -> tuple[Tool, ...]:
    """The built-in tools in the order that models see; none when they are switched off.

    Raises SandboxUnavailable, PrivateDirectoryUnsafe.
    """
    if not config.tools.builtin:
        return ()
    outputs = ManagedOutputs()
    return (
        read.tool(
            image_limits=ImageLimits.of(config.tools),
            outputs=outputs,
            output_limits=read.settlement_limits(config.tools),
        ),
        write.tool(),
        edit.tool(),
        apply_patch.tool(),
        glob.tool(),
        grep.tool(outputs=outputs),
        bash.tool(config.tools, private or open_private_directory(config.tools.spool_dir)),
        todowrite.tool(),
        question.tool(),
        webfetch.tool(config.tools),
        *websearch.tools(config.tools),
    )
