"""A release as sources: this one, or the one before it from the history of the repository."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
COMMIT: Final = (ROOT / "tests" / "integration" / "earlier_release.txt").read_text().strip()
# Every other variable of ours is a setting.
NO_SETTING: Final = re.compile(r"(?!FAIRLEAD_)|FAIRLEAD_CONFIG$|FAIRLEAD_DSN_")
PRINT_SETTINGS: Final = """
from fairlead_service.config.configuration import Config
for section, field in Config.model_fields.items():
    for key in getattr(field.annotation, "model_fields", {}):
        print(f"FAIRLEAD_{section}_{key}".upper())
"""


@dataclass(frozen=True)
class Release:
    """Where the sources of a release are; nothing for this release."""

    sources: Path | None = None

    def environment(self) -> dict[str, str]:
        if self.sources is None:
            return {}
        packages = sorted(path for path in self.sources.glob("*/*/src") if path.is_dir())
        return {"PYTHONPATH": os.pathsep.join(map(str, packages))}

    def known_settings(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables without settings that the release does not know: its own manifests name none."""
        known = _settings_of(self)
        return {name: env[name] for name in env if NO_SETTING.match(name) or name in known}

    def has_service(self, name: str) -> bool:
        """Whether the release has a service of this name."""
        return self.sources is None or (self.sources / "services" / name).is_dir()


THIS: Final = Release()


@cache
def _settings_of(release: Release) -> frozenset[str]:
    ran = subprocess.run(
        [sys.executable, "-c", PRINT_SETTINGS],
        env={**os.environ, **release.environment()},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return frozenset(ran.stdout.split())


def has_earlier_release() -> bool:
    """Whether this clone has the commit of the earlier release."""
    command = ["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def unpack_earlier_release(place: Path) -> Release:
    """Unpack the sources. A clone without their commit cannot: the test is skipped."""
    if not has_earlier_release():
        pytest.skip(f"this clone does not have the commit of the earlier release, {COMMIT}")
    archive = place / "earlier.tar"
    subprocess.run(["git", "archive", "-o", str(archive), COMMIT], cwd=ROOT, check=True)
    sources = place / "earlier"
    sources.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(sources)], check=True)
    return Release(sources)
