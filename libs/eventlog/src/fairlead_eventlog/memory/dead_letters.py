"""Dead letters in memory."""


class MemoryDeadLetters:
    """Buried messages, in order."""

    def __init__(self) -> None:
        self.buried: list[tuple[str, str, bytes, str]] = []

    async def bury(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        self.buried.append((source, subject, payload, reason))
