"""Reads a Dockerfile, and replays the steps of one stage in a root of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")
# What a build has of its machine besides files: where packages come from, and whom to trust.
_PASSED: Final = ("PIP_", "UV_", "SSL_", "REQUESTS_", "CURL_", "HTTP_", "HTTPS_", "NO_PROXY")


@dataclass(frozen=True)
class Step:
    """One instruction: its word, and what stands behind it on one line."""

    word: str
    text: str


@dataclass(frozen=True)
class Stage:
    """One `FROM … AS …` with the steps below it."""

    name: str
    base: str
    steps: tuple[Step, ...]


@dataclass
class Image:
    """The root that the steps of a stage made, and the settings that a container starts with."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    directory: str = "/"
    user: str = "0:0"
    entrypoint: tuple[str, ...] = ()

    def run(
        self, *command: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the image's user, in its root, with no variable of this machine."""
        return subprocess.run(
            ["chroot", f"--userspec={self.user}", str(self.root), "/usr/bin/env", "-i"]
            + ["sh", "-c", f'cd {self.directory} && exec "$@"', "sh", "env"]
            + [f"{name}={value}" for name, value in {**self.environment, **(env or {})}.items()]
            + list(command),
            capture_output=True,
            text=True,
            check=False,
        )


def read_stages(text: str) -> dict[str, Stage]:
    """The stages of a Dockerfile, in order. Comments and line ends are gone."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    stages: dict[str, Stage] = {}
    arguments: dict[str, str] = {}
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name] = Stage(name, _fill(base, arguments), ())
        elif not stages and word == "ARG":
            key, _, value = rest.partition("=")
            arguments[key] = value
        else:
            last = next(reversed(stages.values()))
            stages[last.name] = Stage(last.name, last.base, (*last.steps, Step(word, rest)))
    return stages


@dataclass
class Replay:
    """Builds stages from a Dockerfile, each in a copy of the root that stands for its base image."""

    stages: Mapping[str, Stage]
    base_root: Path
    context: Path
    place: Path
    arguments: Mapping[str, str]
    built: dict[str, Image] = field(default_factory=dict)

    def build(self, name: str) -> Image:
        """Replay a stage, and the stages that it comes from."""
        if name in self.built:
            return self.built[name]
        stage = self.stages[name]
        root = self.place / name
        if stage.base in self.stages:
            below = self.build(stage.base)
            image = Image(
                root, dict(below.environment), below.directory, below.user, below.entrypoint
            )
        else:
            image = Image(root, {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin"})
        source = self.built[stage.base].root if stage.base in self.stages else self.base_root
        subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(root)], check=True)
        for step in stage.steps:
            self._replay(step, image)
        self.built[name] = image
        return image

    def _replay(self, step: Step, image: Image) -> None:
        match step.word:
            case "RUN":
                self._run(step.text, image)
            case "COPY":
                self._copy(step.text, image)
            case "ENV":
                for pair in shlex.split(step.text):
                    key, _, value = pair.partition("=")
                    image.environment[key] = _fill(value, image.environment)
            case "WORKDIR":
                image.directory = step.text
                (image.root / step.text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                image.user = step.text
            case "ENTRYPOINT":
                image.entrypoint = tuple(json.loads(step.text))
            case "ARG" | "EXPOSE" | "HEALTHCHECK":
                pass
            case _:
                raise AssertionError(f"the replay does not know {step.word}")

    def _run(self, text: str, image: Image) -> None:
        command = re.sub(r"^(--mount=\S+\s+)+", "", text)
        passed = {k: v for k, v in os.environ.items() if k.upper().startswith(_PASSED)}
        ran = image.run("sh", "-c", command, env={**passed, **self.arguments})
        assert ran.returncode == 0, f"RUN {command}\n{ran.stdout[-1500:]}\n{ran.stderr[-3000:]}"

    def _copy(self, text: str, image: Image) -> None:
        words = shlex.split(text)
        target = image.root / words[-1].lstrip("/")
        if words[0].startswith("--from="):
            source = self.build(words[0].removeprefix("--from=")).root / words[1].lstrip("/")
            subprocess.run(["cp", "-a", str(source), str(target)], check=True)
            return
        assert words == [".", "."], f"the replay copies the whole context, not {text}"
        target = image.root / image.directory.lstrip("/")
        for path in context_files(self.context):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.context / path, target / path)


def context_files(root: Path) -> Iterator[Path]:
    """What the ignore file of the image lets into a build: the packages without their tests."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "pyproject.toml", "uv.lock", "libs", "services", "apps"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if "tests" not in Path(name).parts:
            yield Path(name)


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], ""), text)
