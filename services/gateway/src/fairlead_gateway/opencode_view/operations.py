"""All routes of the terminal client. The application mounts them beside its own."""

from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.opencode_view.routes import messages, start
from fairlead_gateway.opencode_view.routes.asks import AskRoutes
from fairlead_gateway.opencode_view.routes.sessions import SessionRoutes
from fairlead_gateway.opencode_view.routes.streams import StreamRoutes
from fairlead_gateway.opencode_view.routes.turns import TurnRoutes
from fairlead_gateway.opencode_view.view_hubs import ViewHubs


def view_operations() -> tuple[AnyOperation, ...]:
    """The routes with hubs of their own."""
    hubs = ViewHubs()
    return (
        *start.OPERATIONS,
        *messages.OPERATIONS,
        *SessionRoutes(hubs).operations(),
        *TurnRoutes(hubs).operations(),
        *AskRoutes(hubs).operations(),
        *StreamRoutes(hubs).operations(),
    )
