"""`core/environment`: where the session works."""

import platform
from pathlib import Path
from typing import Final

from fairlead_schema.context import ObservedSource
from fairlead_schema.location import LocationRef

KEY: Final = "core/environment"


def observe(location: LocationRef) -> ObservedSource:
    """The working directory, its root, whether git is there, and the platform."""
    directory = Path(location.directory)
    top = git_root(directory)
    value = {
        "directory": str(directory),
        "root": str(top or directory),
        "git": top is not None,
        "platform": platform.system().lower(),
    }
    return ObservedSource(
        key=KEY,
        value=value,
        baseline=f"Here is the environment you work in.\n{_render(value)}",
        update=f"The environment you work in has changed.\n{_render(value)}",
    )


def git_root(directory: Path) -> Path | None:
    """The nearest directory at or above this one that holds a git repository."""
    return next(
        (place for place in (directory, *directory.parents) if (place / ".git").exists()), None
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
