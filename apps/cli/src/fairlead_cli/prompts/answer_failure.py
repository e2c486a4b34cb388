"""Says why a prompt got no answer, and what helps."""

from typing import Final

from fairlead_client.errors import ClientError, PromptFailed
from fairlead_schema.ids import SessionId

MENDS: Final = {
    "auth": "correct the key of the provider where the server runs, and start `fairlead up` again",
    "rate-limit": "wait a little, or add credit to the account of the provider",
    "network": "the server does not reach the provider: check its network and the address",
    "timeout": "the provider is slow or away: try again",
    "overloaded": "the provider has too much to do: try again",
}
"""What helps, by the code of a step that failed."""


def explain_failure(error: ClientError, session_id: SessionId) -> str:
    """The failure in one sentence. The log of the session has the rest."""
    code = str(error.error.get("code")) if isinstance(error, PromptFailed) else ""
    mend = MENDS.get(code)
    details = f"fairlead tail {session_id}"
    return f"{error} ({details})" if mend is None else f"{error} — {mend} ({details})"
