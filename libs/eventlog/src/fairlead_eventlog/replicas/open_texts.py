"""The text so far of answers that are being written: asked of the runner that writes them."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from fairlead_schema.delta import OpenText
from fairlead_schema.subjects import Address

FindOpenTexts: TypeAlias = Callable[[Address], tuple[OpenText, ...]]
"""The open blocks of a session that this process writes now; none of other sessions."""


class OpenTextsPort(Protocol):
    """Questions for open blocks. Nothing is stored: the event that ends a block holds its whole text."""

    async def start_answering(self, instance: str, find: FindOpenTexts) -> None:
        """Answer questions to this instance from now on."""

    async def ask(self, instance: str, at: Address, *, timeout_s: float) -> tuple[OpenText, ...]:
        """The open blocks of a session, as its owner knows them.

        Raises NoResponders (nobody listens) or LogUnavailable (no answer in time, or none that fits).
        """
