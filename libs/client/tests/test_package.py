"""The package: names that are loaded when they are first used."""

import ssl
import subprocess
import sys

import pytest

import fairlead_client
from fairlead_client.tls_trust import trust_of

LOADED = "import sys, fairlead_client; fairlead_client.{name}; print(*sys.modules)"


def loaded(name: str) -> set[str]:
    program = LOADED.format(name=name)
    process = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return set(process.stdout.split())


@pytest.mark.parametrize("name", fairlead_client.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fairlead_client, name) is not None
    assert name in dir(fairlead_client)


def test_a_name_that_is_not_public_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Fairleed'"):
        _ = fairlead_client.Fairleed


@pytest.mark.parametrize(("name", "other"), [("Fairlead", "async"), ("AsyncFairlead", "sync")])
def test_a_client_loads_neither_the_other_client_nor_nats_nor_the_models_of_events(
    name: str, other: str
) -> None:
    modules = loaded(name)

    assert "httpx" in modules
    unused = (f"fairlead_client.{other}_client", "fairlead_schema.events", "nats")
    assert not [module for module in modules if module.startswith(unused)]


def test_an_address_without_tls_loads_no_certificates_and_would_trust_nobody() -> None:
    trust = trust_of("http://127.0.0.1:9")

    assert isinstance(trust, ssl.SSLContext)
    assert trust.cert_store_stats()["x509_ca"] == 0
    assert trust.verify_mode is ssl.CERT_REQUIRED
    assert trust_of("HTTPS://fairlead.example") is True
