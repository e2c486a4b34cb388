"""A cluster that falls apart: a cut-off leader acknowledges nothing that the others do not have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNSHARE = ("unshare", "--net", "--mount")

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(500)]


def why_no_namespaces() -> str | None:
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else "this user may not make network namespaces"


def test_a_partition_of_the_cluster_loses_and_doubles_nothing() -> None:
    """A1, A2, A6: reads and writes of a cut-off node end in no wrong conclusion."""
    reason = why_no_namespaces()
    if reason is not None:
        pytest.skip(f"{reason}; test_two_nodes_that_stand_still… shows a lost majority instead")
    command = [*UNSHARE, sys.executable, "-m", "tests.integration.cluster.partition_run"]
    support = ROOT / "tests" / "support"

    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(support)},
        capture_output=True,
        text=True,
        check=False,
    )

    print(ran.stdout)  # noqa: T201 - what the run was made of
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "every promise held" in ran.stdout
