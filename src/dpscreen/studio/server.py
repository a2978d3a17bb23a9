"""The server: on the loopback address only, silent, and gone with the terminal that started it.

A request is answered if all of this holds:

    host      it names this server by its number, so a name that was made to lead here does not work
    origin    it comes from these pages, or was typed; foreign pages and forms are refused
    place     its path begins with words that only this run knows
    cookie    it carries what the one-time token of the address was exchanged for

A cookie knows no port, so another server on this machine could be sent it. That is what the place
is for: the cookie belongs to that path, which no other server can make a browser ask for.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpscreen.studio.views import templates

HOST = "127.0.0.1"
COOKIE = "dpscreen-studio"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would hide a form's origin, too
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OWN_SITE = ("same-origin", "none")


@dataclass
class Keys:
    """The secrets of one run. The token is good for one use."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    place: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _used: bool = False

    def redeem(self, token: str) -> bool:
        """Whether this is the token, and the first time that it is shown."""
        with self._lock:
            fits = secrets.compare_digest(token.encode(), self.token.encode()) and not self._used
            self._used = self._used or fits
        return fits

    def admits(self, cookies: Mapping[str, str]) -> bool:
        """Whether a request's cookies hold what the token was exchanged for."""
        return secrets.compare_digest(cookies.get(COOKIE, "").encode(), self.session.encode())


def notice_text(title: str, text: str, *, go: str = "") -> str:
    """Return a short page that needs nothing else; with `go`, one that leads there."""
    page = templates().get_template("notice.html")
    return page.render(title=title, text=text, go=go)


def notice(status: int, title: str, text: str) -> Response:
    """Answer with a short page."""
    return HTMLResponse(notice_text(title, text), status)


STYLES = re.compile(r'\sstyle="([^"]*)"|<style>(.*?)</style>', re.DOTALL)
OWN_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:\">"
)


def framed(html: str) -> Response:
    """Return a model's page with a policy that allows the very styles it has, and nothing else.

    It runs no script; being of the same origin, it can be measured, so that its frame fits it.
    """
    found = {unescape(one[1]) if one[2] is None else one[2] for one in STYLES.finditer(html)}
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in found)
    hashes = " ".join(sorted(f"'sha256-{one}'" for one in digests))
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-hashes' {hashes}; "
        "frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-same-origin"
    )
    page = html.replace(OWN_POLICY, "")
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


class Guard:
    """Lets in who may come in, and puts the headers on whatever goes out."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app, self._keys = app, keys
        self._host = f"{HOST}:{port}"
        self._origin = f"http://{self._host}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong, the answer repeats nothing of it."""
        if scope["type"] != "http":
            return
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = self._answer(scope) or self._app
            await answer(scope, receive, dressed)
        except Exception as error:  # a trace may hold paths and values, so it is shown to nobody
            if not started:
                words = f"The studio failed ({type(error).__name__}). Go back and try again."
                await notice(500, "That did not work", words)(scope, receive, dressed)

    def _answer(self, scope: Scope) -> Response | None:
        """Return why a request is refused, or the answer to the token; None lets it in."""
        headers, path = Headers(scope=scope), scope["path"]
        if headers.get("host") != self._host:
            return notice(421, "Wrong address", f"The studio is at {self._origin} only.")
        typed = headers.get("origin") is None  # no script of another page has sent it
        if path == "/enter" and scope["method"] == "GET" and typed:
            return self._enter(QueryParams(scope["query_string"]).get("token", ""))
        if not self._from_here(headers, scope["method"]):
            return notice(403, "Refused", "This request did not come from the studio's own pages.")
        first = path.split("/")[1] if path.startswith("/") else ""
        at_home = secrets.compare_digest(first.encode(), self._keys.place.encode())
        if not at_home or not self._keys.admits(HTTPConnection(scope).cookies):
            return notice(
                403,
                "This page is not open",
                "Use the address that dpscreen studio printed when it was started. It works once: "
                "then continue in the same browser, or start the studio again.",
            )
        return None

    def _from_here(self, headers: Headers, method: str) -> bool:
        """Whether no other site's page has sent this; a form must name its origin."""
        if headers.get("sec-fetch-site", "none") not in OWN_SITE:
            return False
        if method in ("GET", "HEAD"):
            return headers.get("origin", self._origin) == self._origin
        return headers.get("origin") == self._origin

    def _enter(self, token: str) -> Response:
        """Exchange the token for the cookie, and go on as a page of our own.

        A redirect would still count as sent by whoever held the link, and strict cookies would stay
        at home; the refresh of a page does not.
        """
        if not self._keys.redeem(token):
            return notice(
                403,
                "This link does not open the studio",
                "It is wrong, or it was used before: continue in the browser that used it, from "
                "its history. Or stop the studio with Ctrl-C and start it again: your "
                "declarations are saved.",
            )
        start = f"/{self._keys.place}/table"
        answer = HTMLResponse(notice_text("dpscreen studio", "Continue", go=start))
        answer.set_cookie(
            *(COOKIE, self._keys.session),
            path=f"/{self._keys.place}/",
            httponly=True,
            samesite="strict",
        )
        return answer


# --- listening ------------------------------------------------------------------------------------


class PortTaken(Exception):
    """Another program listens there, or the port may not be used."""


@dataclass(frozen=True)
class Listener:
    """A socket that listens already, so that the address is known before the server runs."""

    socket: socket.socket
    keys: Keys

    @classmethod
    def at(cls, port: int = 0) -> Listener:
        """Listen on the loopback address; 0 takes any free port."""
        found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((HOST, port))
            found.listen(64)
        except OSError:
            found.close()
            raise PortTaken(
                f"Port {port} is in use or not permitted; choose another one."
            ) from None
        return cls(found, Keys())

    @property
    def port(self) -> int:
        """Return the port."""
        number: int = self.socket.getsockname()[1]
        return number

    @property
    def address(self) -> str:
        """Return where to go, with the token that works once."""
        return f"http://{HOST}:{self.port}/enter?token={self.keys.token}"


def serve(app: ASGIApp, listener: Listener, ready: Callable[[], None]) -> None:
    """Answer until the process is stopped. Nothing is logged: requests hold what is typed.

    `ready` is called when all that a first page needs is loaded.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        Guard(app, listener.keys, listener.port),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        timeout_graceful_shutdown=1,
    )
    config.load()
    asyncio.run(run_in_threadpool(int))
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # so that what is open is closed, whoever ends the studio
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        ready()
        uvicorn.Server(config).run(sockets=[listener.socket])


@contextmanager
def browser_door(address: str) -> Iterator[Callable[[], None]]:
    """Yield what opens a browser without showing the token to whoever can list processes.

    The address stands in a file that only this user can read, and that is gone afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="dpscreen-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "open.html"
        page = notice_text("dpscreen studio", "Go on to dpscreen studio", go=address)
        file.write_text(page, encoding="utf-8")

        def work() -> None:
            with suppress(Exception):
                webbrowser.open(file.as_uri())

        yield lambda: threading.Thread(target=work, daemon=True).start()
