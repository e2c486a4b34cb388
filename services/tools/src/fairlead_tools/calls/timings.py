"""Pauses in the life of a call."""

from dataclasses import dataclass

from fairlead_eventlog.session_writer import RETRY_S


@dataclass(frozen=True, slots=True)
class CallTimings:
    """Pauses that no operator needs to change; tests shorten them."""

    log_retry_s: float = RETRY_S
    """Before a commit is tried again that the log did not take."""
    progress_s: float = 1.0
    """Before the first report is written, so a quick call writes none."""
    progress_s_max: float = 16.0
    """Each pause is twice the one before, up to this one, so the log of a long call grows slowly."""
    live_s: float = 0.1
    """Between two messages of live output."""
    cancel_s: float = 5.0
    """How long a cancelled tool may take to end. After that nobody waits for it, and its call is
    settled. A shell command takes three seconds from its SIGTERM to its SIGKILL."""
    store_hurry_s: float = 2.0
    """How long an output may take to be stored when the worker leaves."""
    second_look_s: float = 2.5
    """Between the two looks after which the worker of a call counts as gone."""
