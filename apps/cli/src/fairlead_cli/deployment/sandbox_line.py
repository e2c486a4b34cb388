"""What confines the commands of a stack on this machine, on one line."""

from collections.abc import Mapping
from pathlib import Path

from fairlead_service.config.configuration import load
from fairlead_tools.shell.confinement import find_confinement


def sandbox_line(config_file: Path, env: Mapping[str, str]) -> str:
    """The sandbox that a configuration leads to. Raises ConfigError."""
    return f"sandbox: {find_confinement(load(config_file, env).tools).line}"
