"""The pure modules of the console in node: the fold over recorded streams, the parsers, the rows."""

from pathlib import Path

import pytest

from fairlead_testing.console_javascript import NODE, RECORDINGS, run_javascript_tests


@pytest.mark.skipif(NODE is None, reason="node is not installed: apt-get install nodejs")
def test_the_modules_of_the_console_keep_their_promises(tmp_path: Path) -> None:
    run_javascript_tests(tmp_path, RECORDINGS)
