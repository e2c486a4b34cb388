"""The question to a tools service: the names of its fields on the wire."""

from fairlead_schema.context import ObserveContext
from fairlead_schema.location import LocationRef


def test_the_read_directories_are_called_touched_on_the_wire() -> None:
    request = ObserveContext(
        location=LocationRef(directory="/srv"), read_directories=("/srv/a", "/srv/b")
    )

    wire = request.wire()

    assert wire == {
        "location": {"directory": "/srv"},
        "tenant": "default",
        "touched": ["/srv/a", "/srv/b"],
    }
    assert ObserveContext.model_validate(wire) == request


def test_a_request_without_read_directories_says_so_on_the_wire() -> None:
    request = ObserveContext(location=LocationRef(directory="/srv"))

    wire = {"location": {"directory": "/srv"}, "tenant": "default", "touched": []}
    assert request.wire() == wire


def test_a_request_of_an_older_runner_is_about_the_default_tenant() -> None:
    request = ObserveContext.model_validate({"location": {"directory": "/srv"}, "touched": []})

    assert request.tenant == "default"
