"""Reads attached pages and files of the web, through the guard that webfetch has."""

from fairlead_session.people.permission import Need
from fairlead_tools.attachments.content import RawContent
from fairlead_tools.attachments.places import Permit
from fairlead_tools.builtin.webfetch import HTML, decode
from fairlead_tools.files.path import approval_patterns
from fairlead_tools.web.converter_process import convert_page
from fairlead_tools.web.fetch import fetch, parse_target

ACCEPT = "*/*"


async def read_page(url: str, permit: Permit, *, private: bool, bytes_max: int) -> RawContent:
    """The content at a URL, a page as markdown. Raises NotTaken or CallFailed."""
    target = parse_target(url)
    resources = tuple(dict.fromkeys((url, target.canonical)))
    always = f"{target.scheme}://{target.authority}/*"
    permit((Need("webfetch", resources, approval_patterns(always)),))
    page = await fetch(url, ACCEPT, private=private, limit=bytes_max, texts_only=False)
    name = page.url.partition("?")[0].rpartition("/")[2]
    if page.mime in HTML:
        markdown = await convert_page(decode(page), "markdown")
        return RawContent(markdown.encode(), name, "text/markdown")
    if page.charset is not None and page.mime.startswith("text/"):
        return RawContent(decode(page).encode(), name, page.mime)
    return RawContent(page.body, name, page.mime)
