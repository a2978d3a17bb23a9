"""The pages: which address leads to which step, and how a step is shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router

from dpscreen._core.pictures import SHARED, template_text
from dpscreen.studio import releasing, steps
from dpscreen.studio.server import notice
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.views import Go, StepRequest, View, templates

MOST_BYTES = 4_000_000
MOST_FIELDS = 50_000
Handler = Callable[[Session, StepRequest], Any]
GET, BOTH = ["GET"], ["GET", "POST"]
PAGES: dict[str, tuple[Handler, list[str]]] = {
    "table": (steps.table, BOTH),
    "question": (steps.question, BOTH),
    "budget": (steps.budget, BOTH),
    "live": (steps.live, GET),
    "dry-run": (steps.dry_run, GET),
    "dry-run/page": (steps.dry_run_page, GET),
    "release": (releasing.release, BOTH),
    "progress": (releasing.progress, GET),
    "cancel": (releasing.cancel, ["POST"]),
    "result": (releasing.result, GET),
    "result/page": (releasing.result_page, GET),
    "download": (releasing.download, GET),
}


def studio_app(session: Session, place: str) -> Router:
    """Return all pages, below the words that only this run knows."""

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("", 204)

    async def css(_request: Request) -> Response:
        return Response(style(), media_type="text/css; charset=utf-8")

    async def script(_request: Request) -> Response:
        text = template_text(__package__, "studio.js")
        return Response(text, media_type="text/javascript; charset=utf-8")

    pages = [
        Route(f"/{name}", partial(_endpoint, session, handler), methods=methods)
        for name, (handler, methods) in PAGES.items()
    ]
    others = [Route("/style.css", css), Route("/studio.js", script), Route("/alive", alive)]
    nowhere = notice(404, "There is no such page", "Go back to where you came from.")
    _rendered(session, steps.table(session, StepRequest()))  # so that the first one comes at once
    routes = [*pages, *others, Mount("/", app=nowhere)]
    return Router([Mount(f"/{place}", routes=routes)], default=nowhere)


@cache
def style() -> str:
    """Return the style of the model's page, and what the studio adds to it."""
    return template_text(SHARED, "page.css") + template_text(__package__, "studio.css")


async def _endpoint(session: Session, handler: Handler, request: Request) -> Response:
    try:
        form = await _form(request)
    except ValueError:
        return _cannot(413, "The form is too long.")
    step = StepRequest(dict(request.query_params), form, request.method == "POST")
    return await run_in_threadpool(_answer, session, handler, step)


def _answer(session: Session, handler: Handler, step: StepRequest) -> Response:
    try:
        return _rendered(session, handler(session, step))
    except Problems as problem:  # of the ledger, where a page has no better place for it
        return _cannot(409, " ".join(problem.messages))
    except OSError as problem:  # the disk is full, or the folder is gone; its path is not shown
        failed = f"A file cannot be read or written ({problem.strerror or type(problem).__name__})."
        return _cannot(409, f"{failed} Fix that, go back and try again.")


def _cannot(status: int, text: str) -> Response:
    return notice(status, "The studio cannot go on", text)


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
        case View(template, content, status):
            name = template.removesuffix(".html")
            shared = {} if name.startswith("_") else steps.shared(session, name)
            text = templates().get_template(template).render(shared | content)
            return HTMLResponse(text, status)
    return answer  # type: ignore[no-any-return]
