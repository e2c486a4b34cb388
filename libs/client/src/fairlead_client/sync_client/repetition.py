# Generated from async_client/repetition.py by `make client`: change that file.
"""Sends a request until somebody answers it."""

import time
from collections.abc import Callable
from typing import TypeVar

from fairlead_client.deadline import Deadline
from fairlead_client.errors import ClientError
from fairlead_client.retry_policy import is_passing, is_served, may_be_served, pause_s
from fairlead_client.sync_client.runtime import sleep
from fairlead_schema.errors import Refused, Unauthorized

Answer = TypeVar("Answer")


def repeat(
    send: Callable[[], Answer],
    *,
    is_repeatable: bool,
    patience_s: float | None,
    deadline: Deadline,
    renew: Callable[[], bool],
    verb: str = "",
) -> Answer | None:
    """The first answer, within the patience and the caller's time. Raises the last error, and NotInTime.

    After a refusal of the credentials the request is sent once more, if `renew` has others. None: a try
    whose answer was lost has done what the verb does.
    """
    began, failures, renewed, is_unknown = time.monotonic(), 0, False, False
    while True:
        try:
            return send()
        except Unauthorized:
            if renewed or not renew():
                raise
            renewed = True
            continue
        except (ClientError, Refused) as error:
            if is_unknown and isinstance(error, Refused) and is_served(verb, error):
                return None
            is_unknown = is_unknown or may_be_served(error)
            if not is_passing(error, is_repeatable=is_repeatable):
                raise
            pause = pause_s(failures, error)
            deadline.check(pause_s=pause, cause=error)
            if patience_s is not None and time.monotonic() - began + pause > patience_s:
                raise
        failures += 1
        sleep(pause)
