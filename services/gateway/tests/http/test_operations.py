"""Operations as data: what is parsed is what their functions take."""

from typing import get_args, get_type_hints

import pytest

from fairlead_gateway.a2a_view.operations import a2a_operations
from fairlead_gateway.ag_ui_view.operations import ag_ui_operations
from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.opencode_view.operations import view_operations
from fairlead_gateway.routes import OPERATIONS

ALL = (*OPERATIONS, *a2a_operations(), *ag_ui_operations(), *view_operations())


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.id)
def test_the_query_and_the_body_are_those_of_the_function(operation: AnyOperation) -> None:
    """An operation without a query or a body names none, so the type checker sees no difference."""
    hints = get_type_hints(operation.respond)
    request = next(iter(hints.values()))

    assert get_args(request) == (operation.query, operation.body)
