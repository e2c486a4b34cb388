"""The gateway with the routes of the terminal client, over in-memory twins."""

import pytest
from starlette.applications import Starlette

from fairlead_gateway.http import dispatch
from fairlead_gateway.opencode_view.operations import view_operations
from fairlead_gateway.runtime import Runtime


@pytest.fixture
def app(runtime: Runtime) -> Starlette:
    routes = dispatch.build_routes(runtime, view_operations())
    return dispatch.guard_and_log(Starlette(routes=routes), runtime.settings.origin_rules)
