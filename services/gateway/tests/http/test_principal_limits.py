"""Limits of each principal: requests, bytes and streams (FINDINGS B13)."""

import httpx
import pytest

from fairlead_gateway.http import failed_logins
from fairlead_gateway.http.failed_logins import BURST, PEERS_MAX, FailedLogins, peer_of
from fairlead_gateway.http.principal_limits import (
    PRINCIPALS_MAX,
    LimitSettings,
    PrincipalLimits,
    RateLimited,
)
from fairlead_gateway.settings import GatewaySettings
from services.gateway.tests.conftest import Append, Listen


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(clock: Clock) -> PrincipalLimits:
    settings = LimitSettings(requests_per_s=2, request_burst=3, bytes_per_minute=600, streams_max=2)
    return PrincipalLimits(settings, clock=clock)


def test_a_burst_passes_and_then_the_rate_holds(limits: PrincipalLimits, clock: Clock) -> None:
    for _ in range(3):
        limits.take_request("key:a")
    with pytest.raises(RateLimited) as refused:
        limits.take_request("key:a")
    assert refused.value.retry_after_s == 1

    clock.now += 0.5
    limits.take_request("key:a")
    with pytest.raises(RateLimited):
        limits.take_request("key:a")


def test_one_principal_does_not_use_up_another(limits: PrincipalLimits) -> None:
    for _ in range(3):
        limits.take_request("key:a")

    limits.take_request("key:b")


def test_bytes_are_counted_by_the_minute(limits: PrincipalLimits, clock: Clock) -> None:
    limits.check_bytes("key:a")
    limits.take_bytes("key:a", 900)

    with pytest.raises(RateLimited) as refused:
        limits.check_bytes("key:a")
    assert refused.value.retry_after_s == 30

    clock.now += 31
    limits.check_bytes("key:a")


def test_streams_are_counted_while_they_are_open(limits: PrincipalLimits) -> None:
    with limits.open_stream("key:a"), limits.open_stream("key:a"):
        with pytest.raises(RateLimited), limits.open_stream("key:a"):
            pass
        with limits.open_stream("key:b"):
            pass
    with limits.open_stream("key:a"):
        pass


def test_principals_are_forgotten_but_never_their_open_streams(limits: PrincipalLimits) -> None:
    with limits.open_stream("key:held"):
        for number in range(PRINCIPALS_MAX + 10):
            limits.take_request(f"key:{number}")
        with limits.open_stream("key:held"), pytest.raises(RateLimited):
            limits.open_stream("key:held").__enter__()


class TestOverHttp:
    """Small limits, over HTTP."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        limits = LimitSettings(
            requests_per_s=0.1, request_burst=5, bytes_per_minute=200, streams_max=1
        )
        return GatewaySettings(directory="/srv", fresh_timeout_s=0.02, limits=limits)

    async def test_too_many_requests_are_429_and_say_when_to_come_back(
        self, client: httpx.AsyncClient
    ) -> None:
        for _ in range(5):
            assert (await client.get("/api/agent")).status_code == 200

        answer = await client.get("/api/agent")

        assert (answer.status_code, answer.json()["_tag"]) == (429, "TooManyError")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await client.get("/api/health")).status_code == 200

    async def test_too_many_bytes_are_429(self, client: httpx.AsyncClient, append: Append) -> None:
        await append("ses_1")
        large = {"prompt": {"text": "x" * 300}}
        path = "/api/session/ses_1/prompt"

        first = await client.post(path, json=large)
        second = await client.post(path, json=large)

        assert first.status_code != 429
        assert second.status_code == 429

    async def test_too_many_streams_are_429(
        self, client: httpx.AsyncClient, listen: Listen, append: Append
    ) -> None:
        """B13: one client cannot hold every stream of a gateway."""
        await append("ses_1")

        async with listen("/api/session/ses_1/event") as chunks:
            await chunks.get()
            second = await client.get("/api/session/ses_1/event")
        async with listen("/api/session/ses_1/event") as chunks:
            third = await chunks.get()

        assert second.status_code == 429
        assert third


def test_failed_logins_of_one_address_are_limited_and_others_are_not(clock: Clock) -> None:
    logins = FailedLogins(clock=clock)
    for _ in range(BURST):
        logins.take("10.0.0.1")

    with pytest.raises(RateLimited, match="failed logins"):
        logins.take("10.0.0.1")
    logins.take("10.0.0.2")
    clock.now += 1
    logins.take("10.0.0.1")


def test_addresses_of_one_ipv6_network_share_a_limit_and_texts_are_not_kept() -> None:
    """A proxy's header may hold any text, as long as a client likes."""
    assert peer_of("2001:db8::1") == peer_of("2001:db8::2")
    assert peer_of("2001:db8::1") != peer_of("2001:db8:0:1::1")
    assert peer_of("x" * 10_000) == peer_of(None) == failed_logins.UNKNOWN


def test_the_memory_for_failed_logins_is_bounded(clock: Clock) -> None:
    logins = FailedLogins(clock=clock)
    for number in range(PEERS_MAX + 100):
        logins.take(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")

    assert len(logins._peers) == PEERS_MAX  # noqa: SLF001 - memory is the promise
