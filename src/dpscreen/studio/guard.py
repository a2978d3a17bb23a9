"""Who may ask, and what every answer carries: the door in front of all pages.

A request is answered if all of this holds:

    host      it names this server by its number, so a name that was made to lead here does not work
    origin    it comes from these pages, or was typed; foreign pages and forms are refused
    place     its path begins with words that only this run knows
    cookie    it carries what the one-time token of the address was exchanged for

A cookie knows no port, so another server on this machine could be sent it. That is what the place
is for: the cookie belongs to that path, which no other server can make a browser ask for.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
NOTICE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>dpscreen studio</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{head}</head>
<body><main><h1>{title}</h1><p>{text}</p></main></body></html>
"""


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

    def admits(self, cookies: str) -> bool:
        """Whether a request's cookies hold what the token was exchanged for."""
        try:
            found = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return False
        shown = "" if found is None else found.value
        return secrets.compare_digest(shown.encode(), self.session.encode())


def notice(status: int, title: str, text: str, *, head: str = "") -> Response:
    """Return a short page that needs nothing else; its words are ours, so nothing is escaped."""
    return HTMLResponse(NOTICE.format(title=title, text=text, head=head), status)


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
        except Exception as error:  # a trace may hold paths and values, so it is told to nobody
            if not started:
                failed = _failed(type(error).__name__)
                await failed(scope, receive, dressed)

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
        if not self._at_home(path) or not self._keys.admits(headers.get("cookie", "")):
            return notice(
                403,
                "This page is not open",
                "Use the address that dpscreen studio printed when it was started. It works once: "
                "then go on in the same browser, or start the studio again.",
            )
        return None

    def _at_home(self, path: str) -> bool:
        first = path.split("/")[1] if path.startswith("/") else ""
        return secrets.compare_digest(first.encode(), self._keys.place.encode())

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
                "It is wrong, or it was used before: go on in the browser that used it, where its "
                "history has the page. Or end the studio with Ctrl-C and start it again: what you "
                "declared is saved.",
            )
        start = f"/{self._keys.place}/table"
        head = f'<meta http-equiv="refresh" content="0;url={start}">'
        answer = notice(200, "dpscreen studio", f'<a href="{start}">Go on</a>', head=head)
        answer.set_cookie(
            *(COOKIE, self._keys.session),
            path=f"/{self._keys.place}/",
            httponly=True,
            samesite="strict",
        )
        return answer


def _failed(kind: str) -> Response:
    return notice(
        500, "That did not work", f"The studio failed ({kind}). Go back, and try once more."
    )
