"""The default size of pages, and the cursors of a page."""

from typing import Final

from fairlead_schema.model import Model

PAGE_DEFAULT: Final = 50


class PageCursors(Model):
    """The cursors of the neighbouring pages. An empty page has none."""

    previous: str | None = None
    next: str | None = None
