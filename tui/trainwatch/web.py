"""The same screen in a browser, by textual-serve: who may come, and what each visitor gets."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from textual_serve.server import Server

COOKIE = "trainwatch"
LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self' {socket}; frame-ancestors 'none'"
)
"""What the page may load: from here alone. textual-serve's page asks another host for its font; it has it here too."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Page(Server):
    """Serves one command to browsers. With a token nobody comes in without it; `sessions` may be open at once."""

    def __init__(self, command: str, host: str, port: int, title: str, token: str, sessions: int) -> None:
        super().__init__(command, host=host, port=port, title=title)
        self._token, self._most, self._open = token, sessions, 0

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guarded())
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Nothing: the command has said where it listens."""

    def initialize_logging(self) -> None:
        """None: what a visitor's viewer says on its standard error is of no use here."""

    def _guarded(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            if refusal:
                return web.Response(status=403, text=f"trainwatch: {refusal}\n")
            if self._token and "token" in request.query:
                answer: web.StreamResponse = web.HTTPFound("/")
                answer.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict", path="/")
                return answer
            answer = await handler(request)
            if not answer.prepared:
                answer.headers["Content-Security-Policy"] = POLICY.format(socket=f"ws://{request.host}")
                answer.headers["X-Content-Type-Options"] = "nosniff"
                answer.headers["Referrer-Policy"] = "no-referrer"
            return answer

        return guard

    def _refusal(self, request: web.Request) -> str:
        """Why a request is not answered; empty when it is. Pages of others must not speak for the person."""
        name = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdigit() else request.host
        if is_loopback(self.host) and name.strip("[]") not in LOOPBACK_NAMES and not is_loopback(name.strip("[]")):
            return f"this is served on {self.host} alone, and was asked for as {name!r}"
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            return "another page may not open this one"
        if not self._token:
            return ""
        given = request.query.get("token") or request.cookies.get(COOKIE, "")
        if hmac.compare_digest(given.encode(), self._token.encode()):
            return ""
        return "open the whole address that `trainwatch serve` printed, its token included"

    async def handle_index(self, request: web.Request) -> Any:
        """The page; it connects to the name under which it was asked for."""
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One visitor: a viewer of its own, as long as the page is open."""
        if self._open >= self._most:
            raise web.HTTPServiceUnavailable(text=f"trainwatch: {self._most} pages are open already (--sessions)")
        self._open += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._open -= 1

