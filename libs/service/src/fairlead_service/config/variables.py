"""The environment variables that override the configuration file.

pydantic-settings does not fit (2.16.2 was tried): it cannot say which variable a value came from, it
ignores a file that is missing, and a variable hides a file that has no section where one belongs.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from fairlead_service.config.section import Section

PREFIX: Final = "FAIRLEAD_"
Key: TypeAlias = tuple[str, ...]
"""A section and a key of it, or a key at the top of the file."""

_SERVICE_LINK: Final = re.compile(
    r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$"
)
_SERVICE_ADDRESS: Final = re.compile(r"^(tcp|udp|sctp)://")


def find_variables(env: Mapping[str, str], config: type[BaseModel]) -> dict[Key, str]:
    """The keys that the environment sets, and the variable of each."""
    fields = config.model_fields.items()
    sections = {name for name, field in fields if isinstance(field.default, Section)}
    plain = {name for name, field in fields if field.annotation in {str, str | None}}
    variables: dict[Key, str] = {}
    for variable, value in env.items():
        if not variable.startswith(PREFIX) or _is_service_link(variable, value):
            continue
        name = variable.removeprefix(PREFIX).lower()
        section, _, key = name.partition("_")
        if section in sections and key:
            variables[section, key] = variable
        elif name in plain:
            variables[(name,)] = variable
    return variables


def lay_over(settings: dict[str, Any], key: Key, value: str) -> None:
    """Set one key. A value that stands where a section belongs stays: validation refuses it."""
    *sections, last = key
    target: Any = settings
    for section in sections:
        target = target.setdefault(section, {})
        if not isinstance(target, dict):
            return
    target[last] = value


def _is_service_link(variable: str, value: str) -> bool:
    """Whether Kubernetes set it: each pod gets such variables for a service named `fairlead-…`."""
    if variable.endswith("_PORT") and _SERVICE_ADDRESS.match(value):
        return True
    return _SERVICE_LINK.search(variable) is not None
