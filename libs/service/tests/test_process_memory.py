"""A process that holds secrets, and a command of the same user that wants them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_service import process_memory

NOBODY = 65534
WAIT = "import sys; print(flush=True); sys.stdin.read()"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]


@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("file", ["environ", "maps", "mem"])
def test_a_command_of_the_same_user_does_not_read_a_process(
    *, file: str, guarded: bool, tmp_path: Path
) -> None:
    """B3: `/proc/<worker>/environ` showed the keys of providers to every command."""
    # For root nothing is private, so both processes belong to another user.
    user = NOBODY if os.getuid() == 0 else None
    python = shutil.which("python3", path="/usr/bin") if user else sys.executable
    if python is None:
        pytest.skip("no Python that another user may run")
    source = Path(process_memory.__file__).read_text()
    guard = f"{source}\nkeep_memory_private()\n" if guarded else ""

    with subprocess.Popen(
        [python, "-I", "-c", guard + WAIT],
        env={"ACME_API_KEY": "hush!"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=user,
        group=user,
        cwd=tmp_path.anchor,
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"\n"
        path = f"/proc/{victim.pid}/{file}"
        attack = f"import os; print(os.open({path!r}, os.O_RDONLY | os.O_NONBLOCK))"
        attempt = subprocess.run(
            [python, "-I", "-c", attack],
            user=user,
            group=user,
            capture_output=True,
            check=False,
            cwd=tmp_path.anchor,
        )

    assert (attempt.returncode == 0) != guarded, attempt.stderr
    assert not guarded or b"Permission denied" in attempt.stderr
