"""A gateway that nobody asks in another protocol does not load the package of that protocol."""

import subprocess
import sys

PROGRAM = """
import sys
import fairlead_gateway.app
print([name for name in ("a2a", "acp", "ag_ui", "google.protobuf") if name in sys.modules])
"""


def test_the_application_loads_no_package_of_another_protocol() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
