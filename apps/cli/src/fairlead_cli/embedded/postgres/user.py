"""Chooses the user under which the embedded Postgres runs: not root, and a user with a name."""

import os
import pwd
import subprocess
from pathlib import Path
from typing import Final

from fairlead_cli.embedded import launcher
from fairlead_cli.embedded.child_process import LAUNCH
from fairlead_cli.errors import StateUnusable

PROBE_TIMEOUT_S: Final = 20.0
# Enters the directory of the data, and loads the program with its libraries.
PROBE: Final = 'cd "$1" && exec "$2" --version'
WAYS: Final = (launcher.NAMESPACE, launcher.BECOME_NOBODY)


def choose_user(home: Path, program: Path) -> str:
    """The first way in which a program reaches its files. Raises StateUnusable.

    Postgres refuses root, and a uid without a name, as a container may have.
    """
    uid = os.geteuid()
    if uid != 0 and _has_name(uid):
        return launcher.KEEP_USER
    reasons: list[str] = []
    for user in WAYS if uid == 0 else (launcher.NAMESPACE,):
        reason = _why_unusable(user, home, program)
        if reason is None:
            return user
        reasons.append(f"{user}: {reason}")
    who = "root" if uid == 0 else f"a user without a name (uid {uid})"
    raise StateUnusable(
        f"Postgres does not run as {who}, and no other user can use {home} ({'; '.join(reasons)}):"
        " run fairlead as an ordinary user"
    )


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def file_owner(user: str) -> int:
    """The uid that must own the files of a program that runs so."""
    return launcher.NOBODY if user == launcher.BECOME_NOBODY else os.geteuid()


def own_directory(directory: Path) -> None:
    """Take back a directory that root gave to `nobody` in an earlier release."""
    if os.geteuid() == 0:
        os.chown(directory, 0, 0)


def give_files(directory: Path, uid: int) -> None:
    """Make the user the owner of a directory and all files in it, unless it is already."""
    if directory.stat().st_uid == uid:
        return
    for place, directories, files in os.walk(directory, topdown=False):
        for name in (*directories, *files):
            os.chown(Path(place, name), uid, uid, follow_symlinks=False)
    # The directory itself comes last: after a crash half-way the next start walks again.
    os.chown(directory, uid, uid)


def _why_unusable(user: str, home: Path, program: Path) -> str | None:
    options = (str(os.getpid()), "0", user, "--")
    command = ("/bin/sh", "-c", PROBE, "sh", str(home), str(program))
    try:
        result = subprocess.run(  # noqa: S603 - our own launcher and the wheel's program
            [*LAUNCH, *options, *command],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={"PATH": os.defpath},
            timeout=PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode == 0:
        return None
    lines = result.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {result.returncode}"
