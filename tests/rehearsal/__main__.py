"""`make rehearsal`: a deployment lives through an upgrade, a lost node, a backup and a restore, under load.

The topology is that of deploy/compose.yaml, as processes of this machine. The last lines are the report.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.rehearsal.rehearsal import Rehearsal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report as JSON to this file too")
    parser.add_argument("--state", type=Path, help="keep volumes and logs in this new directory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rehearsal-", ignore_cleanup_errors=True) as temporary:
        root = args.state or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(Rehearsal(root).run())
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(report.to_json())
    print("\n".join(["", *report.lines()]))  # noqa: T201
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
