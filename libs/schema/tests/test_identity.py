"""Identity: scopes, roles, principals, and the verbs that need them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from fairlead_schema.identity.principal import LOCAL, Principal, PrincipalName
from fairlead_schema.identity.scopes import ROLES, SCOPES, UnknownScope, scopes_of
from fairlead_schema.identity.verbs import VERBS

NAME: TypeAdapter[str] = TypeAdapter(PrincipalName)


def test_roles_and_scopes_add_up() -> None:
    assert scopes_of(["viewer", "session:purge"]) == {"session:read", "session:purge"}
    assert scopes_of([]) == frozenset()


def test_an_unknown_scope_is_refused_by_name() -> None:
    with pytest.raises(UnknownScope, match="'session:admin' is neither a role nor a scope"):
        scopes_of(["viewer", "session:admin"])


def test_only_the_admin_has_every_scope() -> None:
    assert [role for role, scopes in ROLES.items() if scopes == set(SCOPES)] == ["admin"]
    assert LOCAL.scopes == set(SCOPES)


def test_a_principal_may_do_what_its_scopes_say() -> None:
    viewer = Principal("key:a", "acme", scopes_of(["viewer"]))

    assert viewer.may("session:read")
    assert not viewer.may("session:write")


@pytest.mark.parametrize(
    "name", ["local", "key:ci-1", "service:billing", "user:https://id.example/00u1"]
)
def test_a_principal_has_a_name_of_its_kind(name: str) -> None:
    assert NAME.validate_python(name) == name


@pytest.mark.parametrize(
    "name", ["", "root", "key:", "key:a.b", "user:", "user:a b", "user:a\nb", "service:*", "key:>"]
)
def test_other_names_are_no_principals(name: str) -> None:
    with pytest.raises(ValidationError):
        NAME.validate_python(name)


def test_every_verb_of_callers_has_a_scope_of_the_table() -> None:
    assert {rule.scope for rule in VERBS.values()} <= {*SCOPES, None}
    assert {verb for verb, rule in VERBS.items() if rule.scope is None} == {
        "permission.recheck",
        "ask.expire",
    }
