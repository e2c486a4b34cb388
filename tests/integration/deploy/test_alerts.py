"""The alerts as Prometheus judges them: what fires, when, and with which words."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fairlead_testing.deploy_files import DEPLOY

RULES = DEPLOY / "observe/alerts.yaml"
CASES = Path(__file__).with_name("alerts_test.yaml")


def run_promtool(*words: str) -> subprocess.CompletedProcess[str]:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: it is part of Prometheus")
    return subprocess.run([promtool, *words], capture_output=True, text=True, check=False)


def test_prometheus_takes_the_rules() -> None:
    ran = run_promtool("check", "rules", str(RULES))

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_fires_when_it_shall_and_not_before(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(f"rule_files: [{RULES}]\n{CASES.read_text()}")

    ran = run_promtool("test", "rules", str(cases))

    assert ran.returncode == 0, ran.stdout + ran.stderr
