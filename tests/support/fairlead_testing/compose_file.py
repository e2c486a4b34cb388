"""A compose file as data: variables filled in, profiles chosen, services in the order of their start."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

HEALTHY: Final = "service_healthy"
COMPLETED: Final = "service_completed_successfully"
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class MissingVariable(AssertionError):
    """A variable without a default is not set. The text is the file's own message."""


@dataclass(frozen=True)
class Mount:
    """What a container sees at a path: a configuration file, or a volume or a part of one."""

    target: str
    volume: str | None = None
    subpath: str = ""
    file: Path | None = None
    read_only: bool = False


@dataclass(frozen=True)
class ComposeService:
    """One service of the file."""

    name: str
    image: str
    package: str | None
    """The package of ours that the image holds: `cli`, `runner` and so on; None for a foreign image."""
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    after: Mapping[str, str]
    healthcheck: tuple[str, ...] | None
    restarts: bool
    profiles: tuple[str, ...] = field(default=())


def load_compose(path: Path, env: Mapping[str, str]) -> dict[str, ComposeService]:
    """The services of a file. Raises MissingVariable."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    files = {name: path.parent / entry["file"] for name, entry in document["configs"].items()}
    return {
        name: _service(name, _fill(entry, env), files)
        for name, entry in document["services"].items()
    }


def start_order(
    services: Mapping[str, ComposeService], profiles: frozenset[str]
) -> list[ComposeService]:
    """The chosen services, each one behind those that it waits for."""
    chosen = {
        name: service
        for name, service in services.items()
        if not service.profiles or profiles & set(service.profiles)
    }
    order: list[ComposeService] = []
    while len(order) < len(chosen):
        done = {service.name for service in order}
        ready = [
            service
            for name, service in chosen.items()
            if name not in done and service.after.keys() <= done
        ]
        assert ready, f"a circle, or a service that does not exist: {set(chosen) - done}"
        order += ready
    return order


def _service(name: str, entry: Mapping[str, Any], files: Mapping[str, Path]) -> ComposeService:
    check = entry.get("healthcheck", {})
    return ComposeService(
        name=name,
        image=entry["image"],
        package=entry.get("build", {}).get("args", {}).get("SERVICE"),
        command=tuple(entry.get("command", ())),
        environment={key: str(value) for key, value in entry.get("environment", {}).items()},
        mounts=(
            *(
                Mount(each["target"], file=files[each["source"]])
                for each in entry.get("configs", ())
            ),
            *(_volume(each) for each in entry.get("volumes", ())),
        ),
        after={each: wait["condition"] for each, wait in entry.get("depends_on", {}).items()},
        healthcheck=tuple(check["test"][1:]) if "test" in check else None,
        restarts=entry.get("restart") == "unless-stopped",
        profiles=tuple(entry.get("profiles", ())),
    )


def _volume(entry: str | Mapping[str, Any]) -> Mount:
    if isinstance(entry, str):
        volume, target = entry.split(":")
        return Mount(target, volume=volume)
    return Mount(
        entry["target"],
        volume=entry["source"],
        subpath=entry.get("volume", {}).get("subpath", ""),
        read_only=entry.get("read_only", False),
    )


def _fill(value: Any, env: Mapping[str, str]) -> Any:  # noqa: ANN401 - any value of YAML
    if isinstance(value, dict):
        return {key: _fill(each, env) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, env) for each in value]
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        name, kind, text = match[1], match[2], match[3]
        if env.get(name):
            return env[name]
        if kind == "?":
            raise MissingVariable(text)
        return text or ""

    return _VARIABLE.sub(look_up, value)
