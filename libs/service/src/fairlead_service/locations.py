"""Which directories a session may use: those inside the roots of its tenant.

Links and `..` are resolved on both sides, so that no spelling of a path leads outside.
"""

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.tools.pool_rules import PoolRules

TenantRoots: TypeAlias = Callable[[TenantId], tuple[str, ...]]
"""The roots of a tenant's sessions."""


def _every_directory(_tenant: TenantId) -> tuple[str, ...]:
    return ("/",)


EVERYWHERE: Final[TenantRoots] = _every_directory
"""The roots of a worker that one person runs for sessions of their own."""
UNCONFIGURED: Final = "no directory is open to sessions: set `roots` or `default` in [location]"


@dataclass(frozen=True, slots=True)
class LocationRefused:
    """A directory that the session may not use. The message says why, and what to configure."""

    directory: str
    message: str


class RootedPlace(NamedTuple):
    """A directory that a session may use, and the innermost root that holds it."""

    directory: str
    root: str


def check_location(roots: Sequence[str], location: LocationRef) -> LocationRefused | None:
    """Why a session may not use a location; None if it may. Follows the links on this machine.

    A caller whose own roots are narrower is checked twice: against the roots of the tenant, then
    against its own.
    """
    directory = location.directory
    if not os.path.isabs(directory):  # noqa: PTH117 - the text of the path decides
        message = f"{directory!r} is a relative path: name the directory by its path from / on"
        return LocationRefused(directory, message)
    if not roots:
        return LocationRefused(directory, f"{directory} cannot be used: {UNCONFIGURED}")
    if containing_root(roots, directory) is not None:
        return None
    message = (
        f"{directory} is outside the configured roots: {', '.join(roots)}. To allow it, add it or a"
        " directory above it to `roots` in [location] or in [tenant.<name>.location]"
    )
    return LocationRefused(directory, message)


def locate(roots: Sequence[str], location: LocationRef) -> LocationRefused | str:
    """The directory of a location with its links followed, or why a session may not use it.

    A link may be replaced after the check. So who uses the directory checks that it is still this one.
    """
    place = locate_in_root(roots, location)
    return place if isinstance(place, LocationRefused) else place.directory


def locate_in_root(roots: Sequence[str], location: LocationRef) -> LocationRefused | RootedPlace:
    """The directory of a location and the root that holds it, both with their links followed."""
    place = _real(location.directory)
    refusal = check_location(roots, location)
    if refusal is not None:
        return refusal
    root = None if place is None else containing_root(roots, place)
    if place is None or root is None:
        message = f"{location.directory} is being replaced: try again when it stays the same"
        return LocationRefused(location.directory, message)
    return RootedPlace(place, root)


def containing_root(roots: Sequence[str], directory: str) -> str | None:
    """The innermost root that holds a directory, with its links followed; None without such a root."""
    place = _real(directory)
    if place is None:
        return None
    holders = [root for root in map(_real, roots) if root is not None and _holds(root, place)]
    return max(holders, key=len, default=None)


def choose_pool(pools: PoolRules, tenant: TenantId, directory: str) -> str:
    """The pool of workers that serves a tenant's sessions in a directory, with its links followed."""
    return pools.choose(tenant, _real(directory) or directory)


def permitted_pools(pools: PoolRules, tenant: TenantId, directory: str) -> tuple[str, ...]:
    """The pools to which a tenant's session in a directory may be moved."""
    return pools.find_permitted(tenant, _real(directory) or directory)


def _real(path: str) -> str | None:
    """The path with all links followed; None if that is impossible."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        # The path holds a null character, or a link on the way is being replaced.
        return None


def _holds(root: str, place: str) -> bool:
    return os.path.commonpath((root, place)) == root
