"""Dead letters in memory."""


class MemoryDeadLetters:
    """Dead letters in a list."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str, bytes, str]] = []

    async def add(self, source: str, subject: str, payload: bytes, reason: str) -> None:
        self.letters.append((source, subject, payload, reason))
