"""P-20: the verbs that register transforms, each for one tenant."""

import pytest

from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_schema.errors import InvalidRequest, LimitReached
from fairlead_schema.identity.scopes import ROLES
from fairlead_schema.transforms.registration import (
    ListTransforms,
    RemoveTransform,
    TransformRegistration,
)
from fairlead_tools.registry.transforms import TRANSFORMS_MAX, TransformVerbs


@pytest.fixture
def verbs() -> TransformVerbs:
    verbs = TransformVerbs()
    verbs.connect(memory_eventlog())
    return verbs


def registration(name: str = "acme/redact", **fields: object) -> TransformRegistration:
    body = {"version": "1", "subject": "fairlead.app.acme.redact", "parts": ["messages"]}
    return TransformRegistration.model_validate({"name": name, **body, **fields})


async def names(verbs: TransformVerbs, tenant: str = "acme") -> list[tuple[str, str]]:
    listed = await verbs.list_all(tenant, ListTransforms())
    return [(found.name, found.version) for found in listed.transforms]


async def test_transforms_are_listed_in_the_order_in_which_they_run(verbs: TransformVerbs) -> None:
    await verbs.register("acme", registration("acme/b"))
    await verbs.register("acme", registration("acme/a"))
    await verbs.register("acme", registration("acme/z", order=1))

    assert await names(verbs) == [("acme/z", "1"), ("acme/a", "1"), ("acme/b", "1")]
    assert await names(verbs, "rival") == []


async def test_a_new_version_replaces_the_old_one(verbs: TransformVerbs) -> None:
    await verbs.register("acme", registration())
    await verbs.register("acme", registration(version="2"))

    assert await names(verbs) == [("acme/redact", "2")]


async def test_a_removed_transform_is_gone_and_removing_it_again_succeeds(
    verbs: TransformVerbs,
) -> None:
    await verbs.register("acme", registration())

    for _ in range(2):
        left = await verbs.remove("acme", RemoveTransform(name="acme/redact"))
        assert left.transforms == ()


async def test_a_transform_is_served_on_a_subject_of_its_tenant(verbs: TransformVerbs) -> None:
    with pytest.raises(InvalidRequest, match=r"must begin with fairlead\.app\.rival\."):
        await verbs.register("rival", registration())


async def test_a_tenant_has_a_bounded_number_of_transforms(verbs: TransformVerbs) -> None:
    for number in range(TRANSFORMS_MAX):
        await verbs.register("acme", registration(f"acme/t{number}"))

    with pytest.raises(LimitReached):
        await verbs.register("acme", registration("acme/more"))
    await verbs.register("acme", registration("acme/t0", version="2"))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "redact"},
        {"parts": []},
        {"parts": ["tools"]},
        {"parts": ["system", "system"]},
        {"timeoutMs": 0},
        {"timeoutMs": 10_001},
        {"order": 5_000},
        {"onFailure": "maybe"},
        {"version": ""},
        {"subject": "fairlead.app.acme.*"},
    ],
)
def test_an_invalid_registration_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        registration(**fields)  # type: ignore[arg-type]


def test_no_role_but_the_admins_may_register_a_transform() -> None:
    """A transform reads and changes whole requests: more than a tool or a source may."""
    allowed = {role for role, scopes in ROLES.items() if "transform:register" in scopes}

    assert allowed == {"admin"}
