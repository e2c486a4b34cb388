"""What pages share: their default size and the cursors around them."""

from typing import Final

from fairlead_schema.model import Model

PAGE_DEFAULT: Final = 50


class Cursors(Model):
    """Where to go on from a page; both are absent when it is empty."""

    previous: str | None = None
    next: str | None = None
