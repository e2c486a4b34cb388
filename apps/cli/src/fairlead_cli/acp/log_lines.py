"""Log lines on standard error, which editors keep. Each is one line: standard output belongs to the protocol."""

import logging
import os
import sys
from typing import Final

from typing_extensions import override

TRACEBACK_VARIABLE: Final = "FAIRLEAD_TRACEBACK"


class OneLine(logging.Formatter):
    """The message, and the error in place of its traceback."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        cause = "" if error is None else f": {type(error).__name__}: {error}"
        return f"fairlead acp: {record.getMessage()}{cause}".replace("\n", " ")


def log_to_standard_error() -> None:
    """Print warnings and failures. With FAIRLEAD_TRACEBACK they have their tracebacks."""
    handler = logging.StreamHandler(sys.stderr)
    if not os.environ.get(TRACEBACK_VARIABLE):
        handler.setFormatter(OneLine())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
