"""Episodes in flight on a resources server: found by session id, bounded, one verb at a time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nemo_tau2.episodes import Episode


class SessionError(Exception):
    """A verb that this session cannot take; `status` is the HTTP status it is answered with."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


@dataclass
class Session:
    """One episode, and how far it is."""

    episode: Episode
    used: float
    done: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    step: asyncio.Task | None = None


class Sessions:
    """The open sessions of one server process.

    A session ends with `close` or after `idle_s` seconds without a verb, so rollouts that vanish
    cost memory for a bounded time. Idle sessions are dropped when another one is opened.
    """

    def __init__(self, limit: int, idle_s: float, clock: Callable[[], float] = time.monotonic):
        self._limit = limit
        self._idle_s = idle_s
        self._clock = clock
        self._sessions: dict[str, Session] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, session_id: str, episode: Episode) -> Session:
        """Starts a session; one that had the id before is dropped. Raises SessionError(503) when full."""
        self._sessions.pop(session_id, None)
        self._drop_idle()
        if len(self._sessions) >= self._limit:
            raise SessionError(
                503, f"{self._limit} episodes are open; raise max_sessions or lower the concurrency"
            )
        session = self._sessions[session_id] = Session(episode, used=self._clock())
        return session

    def get(self, session_id: str) -> Session:
        """The session of that id. Raises SessionError(404) where there is none (any more)."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            raise SessionError(
                404,
                "no episode in this session: never seeded, verified already, or idle for too long",
            )
        session.used = self._clock()
        self._sessions[session_id] = session
        return session

    def close(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    @asynccontextmanager
    async def exclusive(self, session_id: str) -> AsyncIterator[Session]:
        """The session, held so that no other verb runs on its episode meanwhile."""
        session = self.get(session_id)
        async with session.lock:
            if self._sessions.get(session_id) is not session:
                raise SessionError(404, "this episode was closed while the call waited for it")
            yield session

    def _drop_idle(self) -> None:
        oldest_allowed = self._clock() - self._idle_s
        for session_id, session in list(self._sessions.items()):
            if session.used > oldest_allowed:
                break
            if not session.lock.locked():
                del self._sessions[session_id]
