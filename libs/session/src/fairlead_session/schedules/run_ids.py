"""The ids of a run. They follow from the schedule and its due time, so that a repeated run is an exact retry."""

from hashlib import sha256

from fairlead_schema.ids import MessageId, ScheduleId, SessionId, TenantId
from fairlead_schema.schedules.record import SessionChoice


def run_message_id(tenant: TenantId, schedule_id: ScheduleId, due_ms: int) -> MessageId:
    """The message id of the prompt of one run."""
    return f"msg_{_digest(tenant, schedule_id, str(due_ms))}"


def run_session_id(
    tenant: TenantId, schedule_id: ScheduleId, session: SessionChoice, due_ms: int
) -> SessionId:
    """The session of one run."""
    match session:
        case "new":
            return f"ses_{_digest(tenant, schedule_id, str(due_ms))}"
        case "same":
            return f"ses_{_digest(tenant, schedule_id)}"
        case _:
            return session


def _digest(*parts: str) -> str:
    # No seal ends in an underscore, so nobody takes a derived id for a minted one.
    return f"{sha256(' '.join(parts).encode()).hexdigest()[:32]}_"
