"""`core/environment`: where the session works."""

import platform
from pathlib import Path
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_schema.location import LocationRef
from fairlead_tools.context.project import ObservedProject

KEY: Final = "core/environment"


def observe(location: LocationRef, project: ObservedProject) -> ObservedSource:
    """The working directory, its root, whether git is there, and the platform."""
    directory = Path(location.directory)
    value = {
        "directory": str(directory),
        "root": str(project.root if project.has_git else directory),
        "git": project.has_git,
        "platform": platform.system().lower(),
    }
    return ObservedSource(
        key=KEY,
        value=value,
        baseline=f"Here is the environment you work in.\n{_render(value)}",
        update=f"The environment you work in has changed.\n{_render(value)}",
    )


def _render(value: dict[str, object]) -> str:
    return "\n".join(
        (
            "<env>",
            f"Working directory: {value['directory']}",
            f"Workspace root: {value['root']}",
            f"Git repository: {'yes' if value['git'] else 'no'}",
            f"Platform: {value['platform']}",
            "</env>",
        )
    )
