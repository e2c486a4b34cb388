"""The requests that the simulated provider received: counts of all, bodies of the last few."""

from collections import Counter, deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class _LoggedRequest:
    session: str | None
    path: str
    body: bytes


class RequestLog:
    """Every request since the last reset."""

    def __init__(self, keep: int, seed: int = 0) -> None:
        self._seed = seed
        self._last: deque[_LoggedRequest] = deque(maxlen=keep)
        self._total = 0
        self._sessions: Counter[str] = Counter()
        self._protocols: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()

    def add(self, protocol: str, session: str | None, path: str, body: bytes) -> tuple[str, int]:
        """Count a request; return its digest and how often the same request came.

        The digest is the only source of chance: the same seed and request give the same answer.
        """
        self._total += 1
        self._protocols[protocol] += 1
        if session is not None:
            self._sessions[session] += 1
        self._last.append(_LoggedRequest(session, path, body))
        hash_ = blake2b(f"{self._seed} {session} {path} ".encode(), digest_size=12)
        hash_.update(body)
        digest = hash_.hexdigest()
        self._attempts[digest] += 1
        return digest, self._attempts[digest]

    def reset(self) -> None:
        """Forget everything."""
        self._last.clear()
        self._total = 0
        self._sessions.clear()
        self._protocols.clear()
        self._attempts.clear()

    def to_json(self) -> dict[str, Any]:
        """The counts, and the last requests, oldest first."""
        last = [
            {"session": request.session, "path": request.path, "body": _parse_body(request.body)}
            for request in self._last
        ]
        return {
            "total": self._total,
            "sessions": dict(self._sessions),
            "protocols": dict(self._protocols),
            "last": last,
        }


def _parse_body(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")
