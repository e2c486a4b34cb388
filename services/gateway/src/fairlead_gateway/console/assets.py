"""The files of the console. Their path holds a hash of all of them, so that browsers keep them for ever."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairlead_gateway.http.access_log import set_route

PAGES: Final = ("/", "/s/{sessionID}", "/asks", "/ops", "/login")
"""The addresses of the page. The page itself looks which of them it has."""
BASE: Final = "/console"
_PLACE: Final = "{base}"
_MODULES: Final = "{modules}"
_THEME: Final = "theme.js"
"""A plain script that runs before the first paint."""
_COMMENT: Final = re.compile(rb"^[ ]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)$", re.MULTILINE)
"""A comment that has its lines for itself."""
_INDENT: Final = re.compile(rb"^[ ]+", re.MULTILINE)
_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/manifest+json",
}
_RULES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    # A script that hands text to an HTML parser fails, ours included.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
POLICY: Final = "; ".join(_RULES)
_SAFE: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"


@dataclass(frozen=True, slots=True)
class Assets:
    """Every file of the console by its name, and the hash of all of them."""

    content: Mapping[str, bytes]
    version: str

    @property
    def page(self) -> bytes:
        """The page, with the address of this version's files in it."""
        base = f"{BASE}/{self.version}"
        modules = (name for name in self.content if name.endswith(".js") and name != _THEME)
        # A module that the page knows of early costs no round trip later.
        links = "\n".join(f'<link rel="modulepreload" href="{base}/{name}">' for name in modules)
        page = self.content["index.html"].replace(_MODULES.encode(), links.encode())
        return page.replace(_PLACE.encode(), base.encode())


@cache
def load_assets() -> Assets:
    """Read the files of the console once. They change with a release only."""
    content = dict(sorted(_read(files("fairlead_gateway.console") / "static", "")))
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(b"%s\0%d\0" % (name.encode(), len(data)))
        digest.update(data)
    return Assets(content, digest.hexdigest()[:16])


def console_routes() -> list[Route]:
    """The pages of the console, and its files."""
    pages = [Route(path, _page, methods=["GET"]) for path in PAGES]
    return [*pages, Route(BASE + "/{version}/{name:path}", _file, methods=["GET"])]


async def _page(request: Request) -> Response:
    set_route(request.scope, "console")
    assets = load_assets()
    etag = f'"{assets.version}"'
    headers = {**_SAFE, "cache-control": _ASK_AGAIN, "etag": etag}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(assets.page, media_type=_TYPES["html"], headers=headers)


async def _file(request: Request) -> Response:
    set_route(request.scope, BASE)
    assets, name = load_assets(), request.path_params["name"]
    data = assets.content.get(name)
    if data is None or name == "index.html":
        return Response(status_code=404, headers=_SAFE)
    # A page of another release asks for its own files: it gets these, and loads itself again.
    fresh = request.path_params["version"] == assets.version
    etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    caching = {"cache-control": _FOR_EVER if fresh else _ASK_AGAIN, "etag": etag}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={**_SAFE, **caching})
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(data, media_type=kind, headers={**_SAFE, **caching})


def shrink_script(source: bytes) -> bytes:
    """A script without indentation and without comments on lines of their own. Every line keeps its number."""
    code = _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), source)
    return _INDENT.sub(b"", code)


def _read(place: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for item in place.iterdir():
        name = f"{prefix}{item.name}"
        if item.is_dir():
            found += _read(item, f"{name}/")
        elif item.name.rpartition(".")[2] in _TYPES:
            data = item.read_bytes()
            found.append((name, shrink_script(data) if name.endswith(".js") else data))
    return found
