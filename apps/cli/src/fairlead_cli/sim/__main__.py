"""`fairlead sim`: the simulated provider as a command."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from fairlead_cli.sim.app import Settings
from fairlead_cli.sim.scenario import BadScenario, read
from fairlead_cli.sim.serve import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="fairlead sim", description="A simulated provider.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000, help="0 picks a free one")
    parser.add_argument("--json", action="store_true", help="print one line with the URL")
    parser.add_argument("--api-key", default=None, help="refuse calls without this key")
    parser.add_argument("--seed", type=int, default=0, help="what chance there is, from this")
    parser.add_argument("--scenarios", type=Path, metavar="FILE.toml", help="named scripts")
    given = parser.parse_args(arguments)
    try:
        scenarios = () if given.scenarios is None else read(given.scenarios)
    except BadScenario as error:
        parser.error(str(error))
    settings = Settings(api_key=given.api_key, seed=given.seed, scenarios=scenarios)
    run(given.host, given.port, announce=given.json, settings=settings)


if __name__ == "__main__":
    main()
