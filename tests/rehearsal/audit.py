"""What the auditor of a deployment says, once it has read everything."""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import Final

import httpx

from tests.rehearsal.deployment import Deployment

CAUGHT_UP_S_MAX: Final = 60.0
_LINE: Final = re.compile(r"^(fairlead_audit_\w+?)(?:\{(.*?)\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class AuditVerdict:
    """How much the auditor has verified, and which rules were broken."""

    commits: int
    violations: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.commits} commits verified live, {len(self.violations)} rules broken"


async def read_audit(deployment: Deployment) -> AuditVerdict:
    """Wait until the auditor is at the end of the log, and read its metrics."""
    url = f"http://{deployment.topology.address('audit')}:9100/metrics"
    deadline = time.monotonic() + CAUGHT_UP_S_MAX
    async with httpx.AsyncClient(trust_env=False) as http:
        while True:
            found = _LINE.findall((await http.get(url)).text)
            values = {name: float(value) for name, labels, value in found if not labels}
            if values["fairlead_audit_lag_commits"] == 0:
                break
            assert time.monotonic() < deadline, f"the auditor is behind: {values}"
            await asyncio.sleep(0.5)
    violations = [
        f"the auditor counted {value} violations of {labels}"
        for name, labels, value in found
        if name == "fairlead_audit_violations_total"
    ]
    return AuditVerdict(int(values["fairlead_audit_commits_total"]), tuple(violations))
