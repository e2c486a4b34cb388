"""The location of a new or moved session: the named directory or the default, inside the roots."""

from fairlead_schema.errors import InvalidRequest
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_service.locations import UNCONFIGURED, check_location

FIELD = "location.directory"
NO_DEFAULT = "there is no `default` in [location] or in [tenant.<name>.location]"


def permitted_location(
    config: Config, tenant: TenantId, location: LocationRef | None
) -> LocationRef:
    """The location that a session of the tenant gets. Raises InvalidRequest.

    The directory may be on another machine, so nothing here needs it to exist.
    """
    if location is None:
        default = config.default_location(tenant)
        if default is None:
            why = NO_DEFAULT if config.roots(tenant) else UNCONFIGURED
            text = f"Name the location of the session: {why}"
            raise InvalidRequest(text, kind="Body", field=FIELD)
        location = LocationRef(directory=default)
    refusal = check_location(config.roots(tenant), location)
    if refusal is not None:
        raise InvalidRequest(refusal.message, kind="Body", field=FIELD)
    return location
