"""`core/environment`: where the session works."""

import platform
from functools import lru_cache
from pathlib import Path
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_schema.location import LocationRef
from fairlead_tools.context.project import ObservedProject

KEY: Final = "core/environment"
KEPT_MAX: Final = 1024


def observe(location: LocationRef, project: ObservedProject) -> ObservedSource:
    """The working directory, its root, whether git is there, and the platform."""
    directory = str(Path(location.directory))
    root = str(project.root) if project.has_git else directory
    return _observe(directory, root, has_git=project.has_git)


@lru_cache(KEPT_MAX)
def _observe(directory: str, root: str, *, has_git: bool) -> ObservedSource:
    value = {
        "directory": directory,
        "root": root,
        "git": has_git,
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
