"""The parts of a command against real shells: nothing runs that the parts do not show."""

import subprocess
from pathlib import Path
from shutil import which

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead_session.people.command_parts import command_parts

SHELLS = [shell for shell in ("dash", "bash") if which(shell)]
TOKENS = (
    *("evil", "evil", "ls", "a", " ", " ", "\n", "\t", ";", "&", "|", "&&", "||", "|&", "(", ")"),
    *("{ ", "; }", "'", '"', "''", "$(", "`", "\\", "\\\n", " #", "#", "<", " > a", ">&1", "2>&1"),
    *("&>", "<<E\n", "\nE\n", "$'", "${x}", "${x:-", "}", "if ls; then ", "; fi", "do ", "; done"),
    *(
        "for x in a; ",
        "case a in a)",
        ";;",
        "esac",
        "A=b ",
        "command ",
        "eval ",
        "! ",
        "f(){ ",
        "f",
    ),
)
# The text begins on a line of its own, so that it is read as it would be alone.
PRELUDE = "evil() { : > ran; }; ls() { :; }; trap wait EXIT\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shells")


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(st.sampled_from(TOKENS), min_size=2, max_size=12))
def test_a_shell_runs_no_command_that_the_parts_do_not_show(
    directory: Path, shell: str, tokens: list[str]
) -> None:
    """B7: a program that a shell runs is a part, or the parts are unknown."""
    text = "".join(tokens)
    parts = command_parts(text)
    if parts is None or any(part.split(" ")[0] == "evil" for part in parts):
        return
    (directory / "ran").unlink(missing_ok=True)

    subprocess.run(
        [str(which(shell)), "-c", PRELUDE + text],
        cwd=directory,
        env={"PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )

    assert not (directory / "ran").exists()
