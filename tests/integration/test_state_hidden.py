"""The state of a stack lies inside the location of its sessions, as after a plain `fairlead up`."""

import json
from pathlib import Path

import pytest

from fairlead_testing.session_driver import events_of, wait_until_settled
from fairlead_testing.stack import stack

pytestmark = pytest.mark.integration

CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""
ATTEMPTS = {
    "read": {"path": ".fairlead/secret"},
    "write": {"path": ".fairlead/made", "content": "x"},
    "grep": {"pattern": "planted", "path": ".fairlead"},
    "bash": {"command": "cat secret", "workdir": ".fairlead"},
}


async def test_no_tool_touches_the_state_of_its_stack(tmp_path: Path) -> None:
    """B3, B6: tokens and passwords of the stack are there, whatever the rules permit."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    config = tmp_path / "fairlead.toml"
    config.write_text(f"{CONFIG}\n[location]\ndefault = {json.dumps(str(tmp_path))}\n")
    async with stack(tmp_path / ".fairlead", sim=True, config=config) as up:
        (tmp_path / ".fairlead/secret").write_text("planted")
        for tool, arguments in ATTEMPTS.items():
            session = await up.session()
            text = f"[[sim: tool={tool} args='{json.dumps(arguments)}' ; answer=done]]"
            await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": text}})
            log = await wait_until_settled(up, session)
            assert len(events_of(log, "tool.failed")) == 1, tool

        assert not (tmp_path / ".fairlead/made").exists()
