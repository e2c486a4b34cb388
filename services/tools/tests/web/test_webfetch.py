"""webfetch against a real server on loopback, and its guard against private addresses."""

import asyncio
import gzip
import ipaddress
import socket
import zlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead_schema.location import LocationRef
from fairlead_schema.permission import PermissionRule
from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.web import guard
from fairlead_service.web.name_lookup import LOOKUPS
from fairlead_session.calls.lifecycle import Succeeded
from fairlead_session.people.permission import judge
from fairlead_testing.web_server import Site, reply, site
from fairlead_tools.app import build_registry
from fairlead_tools.builtin.webfetch import WebfetchInput, execute, needs, tool_with
from fairlead_tools.registry.outcome import encode_output
from fairlead_tools.registry.tool import CallContext, CallFailed
from fairlead_tools.settings import ToolsSettings
from fairlead_tools.web.fetch import AGENT, BODY_BYTES_MAX, PLAIN_AGENT, fetch, is_text
from services.tools.tests.conftest import AT

CONTEXT = CallContext(AT, LocationRef(directory="/w"), "build", "msg_a", "call_1", "wkr_a")
NEAR = partial(fetch, private=True)


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    async with site() as server:
        yield server


async def fetch_text(url: str, **fields: Any) -> str:  # noqa: ANN401
    (content,) = (await execute(NEAR, WebfetchInput(url=url, **fields), CONTEXT)).content or ()
    assert isinstance(content, TextContent)
    return content.text


async def fetch_error(url: str, **fields: Any) -> str:  # noqa: ANN401
    with pytest.raises(CallFailed) as error:
        await fetch_text(url, **fields)
    return str(error.value)


def test_its_input_has_defaults_and_limits() -> None:
    """L-74."""
    input_ = WebfetchInput(url="http://a.example")

    assert (input_.format, input_.timeout) == ("markdown", 30)
    for wrong in ({"timeout": 121}, {"timeout": 0}, {"format": "pdf"}, {"headers": "x"}):
        with pytest.raises(ValidationError):
            WebfetchInput.model_validate({"url": "http://a.example", **wrong})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "gopher://a",
        "a.example",
        "http://",
        "http://user:key@a.example/",
        "http://a.example:99999/",
        "http://a.example/ x",
        "http://a.example/\n",
        "https://a.example\\b.example/",
        "https://a.example\\@b.example/",
        "http://" + "a" * 9000,
    ],
)
async def test_what_is_no_web_address_is_refused_before_anybody_is_asked(url: str) -> None:
    """L-75."""
    with pytest.raises(CallFailed):
        await needs(WebfetchInput(url=url), CONTEXT)


async def test_permission_is_for_the_exact_url_and_for_always_its_host() -> None:
    """L-75."""
    (need,) = await needs(WebfetchInput(url="https://a.example:8443/x?y#z"), CONTEXT)

    assert (need.action, need.resources) == ("webfetch", ("https://a.example:8443/x?y#z",))
    assert need.save == ("https://a.example:8443/*",)


@pytest.mark.parametrize(
    "url",
    [
        "HTTPS://EVIL.example/x",
        "https://evil.example:443/x",
        "https://evil.example./x",
        "https://evil\u3002example/x",
        "https://evil.example",
    ],
)
async def test_no_spelling_of_a_host_passes_by_a_rule(url: str) -> None:
    """B7, B17: what is connected to is judged, and not only how it is written."""
    rules = (
        PermissionRule(action="webfetch", resource="*", effect="allow"),
        PermissionRule(action="webfetch", resource="https://evil.example/*", effect="deny"),
    )
    (need,) = await needs(WebfetchInput(url=url), CONTEXT)

    assert judge(rules, (), need) == "deny"


@pytest.mark.parametrize("path", ["docs/../admin", "docs/%2E%2e/admin", "docs/./../admin"])
async def test_no_spelling_of_a_path_leaves_an_allowed_directory(path: str) -> None:
    """B7: the client takes the dots out before it sends the path."""
    rules = (
        PermissionRule(action="webfetch", resource="https://a.example/docs/*", effect="allow"),
    )
    (need,) = await needs(WebfetchInput(url=f"https://a.example/{path}"), CONTEXT)

    assert judge(rules, (), need) == "ask"


@pytest.mark.parametrize(
    ("format_", "text"),
    [("markdown", "# Hi\n\nyou & **me**"), ("text", "Hi\n\nyou & me"), ("html", "<h1>Hi</h1>")],
)
async def test_a_page_is_shown_as_asked(web: Site, format_: str, text: str) -> None:
    """L-76: scripts and styles are dropped."""
    page = b"<h1>Hi</h1><script>bad()</script><style>p{}</style><p>you &amp; <b>me</b></p>"
    web.pages["/"] = reply(page, mime="text/html; charset=utf-8")

    page_text = await fetch_text(web.url(), format=format_)

    assert page_text.startswith(text)
    assert format_ == "html" or "bad()" not in page_text


async def test_other_text_passes_through_and_the_model_sees_the_text(web: Site) -> None:
    """L-76."""
    web.pages["/x"] = reply(
        '{"a": "é"}'.encode("latin-1"), mime="application/json; charset=latin-1"
    )
    tool = tool_with(NEAR)

    output = await tool.execute(WebfetchInput(url=web.url("/x")), CONTEXT)
    outcome = encode_output(tool, output)

    assert isinstance(outcome, Succeeded)
    assert outcome.content == (TextContent(text='{"a": "é"}'),)
    assert outcome.structured["contentType"] == "application/json"


async def test_a_page_that_cannot_be_converted_is_an_error(
    web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-76."""
    web.pages["/"] = reply(b"<p>", mime="text/html")
    monkeypatch.setattr(
        "fairlead_tools.web.converter_process._PROGRAM", ("-c", "raise SystemExit(2)")
    )

    assert "cannot be converted" in await fetch_error(web.url())
    assert await fetch_text(web.url(), format="html") == "<p>"


@pytest.mark.parametrize("charset", [None, "no-such-charset", "utf-8"])
async def test_what_is_no_character_is_shown_as_such(web: Site, charset: str | None) -> None:
    """L-76: the charset of the server does not matter."""
    mime = "text/plain" + (f"; charset={charset}" if charset else "")
    web.pages["/"] = reply(b"a\xff", mime=mime)

    assert await fetch_text(web.url()) == "a\ufffd"


@pytest.mark.parametrize("mime", ["image/png", "image/svg+xml", "application/pdf", "video/mp4"])
async def test_what_is_no_text_is_refused(web: Site, mime: str) -> None:
    """L-77."""
    web.pages["/"] = reply(b"\x89", mime=mime)

    assert "not text" in await fetch_error(web.url())
    assert not is_text(mime)


async def test_a_body_that_is_declared_too_large_is_not_read(web: Site) -> None:
    """L-77."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {BODY_BYTES_MAX + 1}"
    web.pages["/"] = head.encode() + b"\r\n\r\nx"

    assert "too large" in await fetch_error(web.url())


async def test_a_body_that_grows_too_large_is_cut_off(web: Site) -> None:
    """L-77: this holds also for an endless body."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    web.pages["/"] = endless

    assert "too large" in await fetch_error(web.url())


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_a_packed_body_is_unpacked_up_to_the_same_limit(web: Site, pack: Any) -> None:  # noqa: ANN401
    """L-77: a body that unpacks to a thousand times its size does not fill the memory."""
    encoding = "content-encoding: " + ("gzip" if pack is gzip.compress else "deflate")
    web.pages["/small"] = reply(pack(b"hello"), encoding, mime="text/plain")
    web.pages["/bomb"] = reply(pack(b"\0" * (64 * 1024 * 1024)), encoding, mime="text/plain")
    web.pages["/odd"] = reply(b"x", "content-encoding: br", mime="text/plain")
    web.pages["/broken"] = reply(b"not packed", encoding, mime="text/plain")

    assert await fetch_text(web.url("/small")) == "hello"
    assert "too large" in await fetch_error(web.url("/bomb"))
    assert "encoded as br" in await fetch_error(web.url("/odd"))
    assert "cannot be read" in await fetch_error(web.url("/broken"))


async def test_a_challenge_is_met_once_with_a_plain_name(web: Site) -> None:
    """L-78: the second attempt has a plain user agent that still names Fairlead."""
    web.pages["/"] = reply(b"no", "cf-mitigated: challenge", status="403 Forbidden")

    assert "status 403" in await fetch_error(web.url())
    assert [headers["user-agent"] for _, headers, _ in web.asked] == [AGENT.lower(), PLAIN_AGENT]


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "500 Oh"])
async def test_an_error_is_told_and_not_tried_again(web: Site, status: str) -> None:
    """L-78."""
    web.pages["/"] = reply(b"no", status=status)

    assert f"status {status[:3]}" in await fetch_error(web.url())
    assert len(web.asked) == 1


async def test_the_time_is_for_the_whole_fetch(web: Site) -> None:
    """L-79: a server that sends slowly gets no extra time."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    web.pages["/"] = drip

    assert "took longer than 0.2 s" in await fetch_error(web.url(), timeout=0.2)


@pytest.mark.parametrize("url", ["http://*/a", "https://*.com/a"])
async def test_an_approval_for_always_is_never_for_a_pattern_of_hosts(url: str) -> None:
    """B7: a star in the host of a URL would have opened every host."""
    (need,) = await needs(WebfetchInput(url=url), CONTEXT)

    assert need.save == ()


async def test_redirects_on_the_same_host_are_followed(web: Site) -> None:
    """L-75: the number of redirects is limited, and the scheme must stay on the web."""
    web.pages["/a"] = reply(b"", "location: /b", status="302 Found")
    web.pages["/b"] = reply(b"there", mime="text/plain")
    web.pages["/loop"] = reply(b"", "location: /loop", status="301 Moved")
    web.pages["/file"] = reply(b"", "location: file:///etc/passwd", status="301 Moved")

    assert await fetch_text(web.url("/a")) == "there"
    assert "more than 5 times" in await fetch_error(web.url("/loop"))
    assert "http:// or https://" in await fetch_error(web.url("/file"))


async def test_a_redirect_to_another_host_is_told_and_not_followed(web: Site) -> None:
    """L-75: the permission was for this host; the model may ask for the other."""
    web.pages["/"] = reply(b"", "location: http://other.example/x", status="302 Found")

    assert "Fetch http://other.example/x itself" in await fetch_error(web.url())


@pytest.mark.parametrize("other", ["http://127.0.0.1:9/x", "https://127.0.0.1:{port}/x"])
async def test_a_redirect_to_another_port_or_scheme_is_told_and_not_followed(
    web: Site, other: str
) -> None:
    """B17: an approved URL could lead to another service of the same host."""
    target = other.format(port=urlsplit(web.url()).port)
    web.pages["/"] = reply(b"", f"location: {target}", status="302 Found")

    assert f"Fetch {target} itself" in await fetch_error(web.url())


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.0.1", "198.18.0.1"),
        *("192.0.0.192", "192.88.99.1", "168.63.129.16", "3fff::1", "64:ff9b:1::a00:1"),
        *("::1", "::", "fe80::1", "fc00::1", "ff02::1", "fec0::1", "::ffff:10.0.0.1"),
        *("::ffff:169.254.169.254", "64:ff9b::a00:1", "2002:a00:1::", "::7f00:1"),
    ],
)
def test_what_is_not_the_open_network_is_not_public(address: str) -> None:
    """L-75: an address that embeds such an address is not public either."""
    assert not guard.is_public(ipaddress.ip_address(address))


def test_port_0_is_no_other_name_of_the_usual_port() -> None:
    """L-75: the permission was for what the URL says."""
    with pytest.raises(guard.AddressRefused, match="port 0"):
        guard.parse_target("http://example.com:0/")


@given(st.ip_addresses(v=4))
def test_an_address_is_as_public_as_the_one_inside(address: ipaddress.IPv4Address) -> None:
    """L-75: the notation does not matter."""
    inside = [f"::ffff:{address}", str(ipaddress.IPv6Address((0x64FF9B << 96) + int(address)))]

    assert {guard.is_public(ipaddress.ip_address(item)) for item in inside} == {
        guard.is_public(address)
    }
    assert not (address.is_private and guard.is_public(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433"])
async def test_a_private_host_is_refused_however_it_is_spelt(host: str) -> None:
    """L-75: a setting may allow private hosts."""
    with pytest.raises(CallFailed):
        await fetch(f"http://{host}:1/", "*/*", private=False)


async def test_a_name_is_resolved_once_and_the_connection_goes_where_was_looked(
    web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-75: a different second answer for the name has no effect."""
    web.pages["/"] = reply(b"pinned", mime="text/plain")
    hosts: list[str] = []

    def find(host: str, _port: None, **_: Any) -> list[Any]:  # noqa: ANN401
        hosts.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(LOOKUPS, "find", find)
    page = await fetch(f"http://rebind.example:{web.port}/", "*/*", private=True)

    assert (page.body, hosts.count("rebind.example")) == (b"pinned", 1)
    assert web.asked[0][1]["host"] == f"rebind.example:{web.port}"


async def test_one_forbidden_address_among_many_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """L-75."""

    def find(_host: str, _port: None, **_: Any) -> list[Any]:  # noqa: ANN401
        return [(2, 1, 6, "", (address, 0)) for address in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(LOOKUPS, "find", find)
    with pytest.raises(CallFailed, match="private address"):
        await fetch("http://mixed.example/", "*/*", private=False)


async def test_a_server_that_is_not_there_is_told(unused_tcp_port: int) -> None:
    """L-75."""
    assert "cannot be read" in await fetch_error(f"http://127.0.0.1:{unused_tcp_port}/")
    assert "cannot be resolved" in await fetch_error("http://nowhere.invalid/")


def test_it_is_offered_and_searching_only_when_configured() -> None:
    """L-80: without a search service there is no websearch."""
    search = {"acme": {"url": "http://127.0.0.1:1/"}}
    with_search = Config(tools=ToolsConfig.model_validate({"websearch": search}))

    names = [
        [tool.name for tool in build_registry(ToolsSettings(config)).catalog().tools]
        for config in (Config(), with_search)
    ]

    assert "websearch" not in names[0]
    assert {"webfetch", "websearch"} <= set(names[1])
