"""Checks the configured roots at the start: only this service sees the directories themselves."""

import logging
import os.path
from collections.abc import Iterator
from pathlib import Path

from fairlead_service.config.configuration import Config, ConfigError

log = logging.getLogger(__name__)


def check_roots(config: Config, origin: str) -> None:
    """Report each root that is a link or missing. Raises ConfigError if not one of them is there.

    A missing root of one tenant must not stop the calls of all others, so it is only reported.
    """
    roots = [(key, root, Path(root).is_dir()) for key, root in _roots(config)]
    if roots and not any(exists for _, _, exists in roots):
        keys = ", ".join(dict.fromkeys(key for key, _, _ in roots))
        reason = "not one root is a directory on this machine: create one, or correct the path"
        raise ConfigError(origin, keys, reason)
    for key, root, exists in roots:
        real = os.path.realpath(root)
        if not exists:
            log.warning(
                "root is no directory on this machine: calls below it fail until it is created",
                extra={"key": key, "root": root},
            )
        elif real != os.path.normpath(root):
            log.warning(
                "root goes through a link: sessions may use the directory that it leads to",
                extra={"key": key, "root": root, "directory": real},
            )


def _roots(config: Config) -> Iterator[tuple[str, str]]:
    """Every root with the key that configures it; the default location where there are no roots."""
    sections = {"location": config.location} | {
        f"tenant.{name}.location": tenant.location for name, tenant in config.tenant.items()
    }
    for section, settings in sections.items():
        yield from ((f"{section}.roots", root) for root in settings.roots)
        if settings.default is not None and not settings.roots:
            yield f"{section}.default", settings.default
