"""The rehearsal itself, as `make rehearsal` runs it, and its verdict about logs that break a promise."""

from pathlib import Path

import pytest

from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    PromptAdmitted,
    PromptPromoted,
    SessionEvent,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Recorded
from fairlead_testing.exports import created
from fairlead_testing.releases import has_earlier_release
from tests.rehearsal.load import Acknowledged
from tests.rehearsal.rehearsal import Rehearsal
from tests.rehearsal.report import Report
from tests.rehearsal.verdict import judge

HELLO = Prompt(text="hello")
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=HELLO, delivery="steer")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=HELLO, created=1)
CLAIMED = ExecutionClaimed(generation=1, runner="run_a")
PROMISED = [Acknowledged("ses_1", "msg_1", 0.0)]


def log_of(*events: SessionEvent) -> list[Recorded]:
    return [
        Recorded(id=f"evt_{seq}", seq=seq, time=seq, event=event)
        for seq, event in enumerate((created(), *events), start=1)
    ]


def test_a_receipt_without_a_log_is_lost() -> None:
    assert judge({}, PROMISED)["lost"]
    assert judge({"ses_1": log_of()}, PROMISED)["lost"]


def test_a_prompt_that_nobody_took_up_is_stranded() -> None:
    broken = judge({"ses_1": log_of(ADMITTED)}, PROMISED)

    assert broken["stranded"]
    assert not broken["lost"]


def test_a_prompt_that_was_promoted_twice_is_doubled() -> None:
    assert judge({"ses_1": log_of(ADMITTED, CLAIMED, PROMOTED, PROMOTED)}, PROMISED)["doubled"]


def test_a_broken_rule_of_another_kind_is_found() -> None:
    released = ExecutionReleased(generation=7, reason="idle")

    assert judge({"ses_1": log_of(ADMITTED, CLAIMED, PROMOTED, released)}, PROMISED)["other"]


def test_a_report_says_what_is_broken_and_is_not_good() -> None:
    report = Report()
    with report.step("start") as step:
        step.detail = "three nodes"
    verdicts = [report.lines()[-1]]

    report.broken["lost"].append("first deployment: ses_1 has a receipt and no log")
    verdicts.append(report.lines()[-1])

    assert verdicts == ["verdict: every promise was kept", "verdict: PROMISES WERE BROKEN"]
    assert "acknowledged: lost 1, doubled 0, stranded 0, other 0" in report.lines()
    assert '"good": false' in report.to_json()


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_deployment_lives_through_upgrade_node_loss_backup_and_restore(
    tmp_path: Path,
) -> None:
    if not has_earlier_release():
        pytest.skip("this clone does not have the commit of the earlier release")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)

    report = await Rehearsal(tmp_path).run()

    assert report.is_good, "\n".join(report.lines())
    assert report.load["sub-agent sessions"] > 0
    assert report.load["asks answered"] > 0
