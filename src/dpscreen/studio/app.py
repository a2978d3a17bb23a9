"""The pages: which address leads to which step, and how a step is shown."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment
from markupsafe import escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router

from dpscreen._core.pictures import SHARED, environment, template_text
from dpscreen.studio import releasing, steps
from dpscreen.studio.guard import notice
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.views import Go, Part, Shown, StepRequest, View

MOST_BYTES = 4_000_000
MOST_FIELDS = 50_000
Handler = Callable[[Session, StepRequest], Any]
PAGES: dict[str, tuple[Handler, tuple[str, ...]]] = {
    "table": (steps.table, ("GET", "POST")),
    "question": (steps.question, ("GET", "POST")),
    "budget": (steps.budget, ("GET", "POST")),
    "live": (steps.live, ("GET",)),
    "dry-run": (steps.dry_run, ("GET",)),
    "dry-run/page": (steps.dry_run_page, ("GET",)),
    "release": (releasing.release, ("GET", "POST")),
    "progress": (releasing.progress, ("GET",)),
    "cancel": (releasing.cancel, ("POST",)),
    "result": (releasing.result, ("GET",)),
    "result/page": (releasing.result_page, ("GET",)),
    "download": (releasing.download, ("GET",)),
}
SCRIPT = "text/javascript; charset=utf-8"


def studio_app(session: Session, place: str) -> Router:
    """Return all pages, below the words that only this run knows."""
    pages = [
        Route(f"/{name}", _endpoint(session, handler), methods=list(methods))
        for name, (handler, methods) in PAGES.items()
    ]
    others = [
        Route("/style.css", _file("text/css; charset=utf-8", style)),
        Route("/studio.js", _file(SCRIPT, lambda: template_text(__package__, "studio.js"))),
        Route("/alive", _alive(session)),
        Mount("/", app=_nowhere),
    ]
    _rendered(session, steps.table(session, StepRequest()))  # so that the first one comes at once
    return Router([Mount(f"/{place}", routes=[*pages, *others])], default=_nowhere)


@cache
def style() -> str:
    """Return the style of the model's page, and what the studio adds to it."""
    return template_text(SHARED, "page.css") + template_text(__package__, "studio.css")


@cache
def templates() -> Environment:
    """Return the templates."""
    return environment(__package__)


def _endpoint(session: Session, handler: Handler) -> Any:
    async def endpoint(request: Request) -> Response:
        try:
            form = await _form(request)
        except ValueError:
            return _cannot(413, "The form is too long.")
        asked = StepRequest(dict(request.query_params), form, request.method == "POST")
        return await run_in_threadpool(_answer, session, handler, asked)

    return endpoint


def _answer(session: Session, handler: Handler, asked: StepRequest) -> Response:
    try:
        return _rendered(session, handler(session, asked))
    except Problems as problem:  # of the ledger, where a page has no better place for it
        return _cannot(409, " ".join(problem.told))
    except OSError as problem:  # the disk is full, or the folder is gone; its path is not told
        told = f"A file cannot be read or written ({problem.strerror or type(problem).__name__})."
        return _cannot(409, f"{told} Mend that, go back, and try once more.")


def _cannot(status: int, text: str) -> Response:
    return notice(status, "The studio cannot go on", str(escape(text)))


async def _form(request: Request) -> dict[str, list[str]]:
    """Read a form of plain fields; what is too long to be one is not read to its end."""
    if request.method != "POST":
        return {}
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise ValueError("the form is too long")
    return parse_qs(
        body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
    )


def _rendered(session: Session, answer: Any) -> Response:
    match answer:
        case Go(where):
            return RedirectResponse(where, 303)
        case Shown(html):
            return framed(html)
        case Part(template, content):
            return HTMLResponse(templates().get_template(template).render(content))
        case View(template, content, status):
            shared = steps.shared(session, template.removesuffix(".html"))
            text = templates().get_template(template).render(shared | content)
            return HTMLResponse(text, status)
    return answer  # type: ignore[no-any-return]


# --- a model's page in a frame --------------------------------------------------------------------

STYLES = re.compile(r'\sstyle="([^"]*)"|<style>(.*?)</style>', re.DOTALL)


def framed(html: str) -> Response:
    """Return a model's page with a policy that allows the very styles it has, and nothing else."""
    found = {unescape(one[1]) if one[2] is None else one[2] for one in STYLES.finditer(html)}
    hashes = " ".join(sorted(f"'sha256-{_digest(one)}'" for one in found))
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-hashes' {hashes}; "
        "frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox"
    )
    page = html.replace(OWN_POLICY, "")
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


OWN_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:\">"
)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# --- small answers --------------------------------------------------------------------------------


def _file(kind: str, text: Callable[[], str]) -> Any:
    async def endpoint(_request: Request) -> Response:
        return Response(text(), media_type=kind)

    return endpoint


def _alive(session: Session) -> Any:
    async def endpoint(_request: Request) -> Response:
        await run_in_threadpool(session.warm)  # the page is out: now there is time
        return PlainTextResponse("", 204)

    return endpoint


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    await notice(404, "There is no such page", "Go back to where you came from.")(
        scope, receive, send
    )
