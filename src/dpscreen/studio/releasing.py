"""The last two steps: the release, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from starlette.responses import FileResponse, Response

from dpscreen._core.words import figure, how_many, listed, shortened
from dpscreen.studio import work
from dpscreen.studio.questions import CHOICES
from dpscreen.studio.server import framed, notice
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.shelf import FILES, KeptRelease
from dpscreen.studio.steps import expected, reachable
from dpscreen.studio.views import Go, StepRequest, View

MOST_COMPARED, MOST_FEATURES = 5, 40
SHOWN_OTHERWISE = ("method", "target", "date")
"""Facts of a comparison that have another form here."""
NAMED = {"interest": "Of interest", "required": "Always kept"}
WRONG_NAME = "That is not the data set's name. Nothing was started."


# --- release --------------------------------------------------------------------------------------


def release(session: Session, request: StepRequest) -> View | Go:
    """Start a release: once for a ticket, and only with the data set's name typed."""
    if session.run is not None and session.run.running:
        return Go("progress")
    if "release" not in reachable(session):
        return Go("budget")
    problems: tuple[str, ...] = ()
    if request.posted:
        try:
            if request.text("dataset").strip() != session.granted.dataset.strip():
                raise Problems(WRONG_NAME)
            session.release(request.text("ticket"))
            return Go("progress")
        except Problems as found:
            problems = found.messages
    ledger, draft = session.granted, session.draft
    unit, most = draft.block.get("unit"), how_many(draft.block.get("rows_per_unit") or 1, "row")
    intervals = "yes, of every coefficient that the rows allow" if draft.has_intervals else "no"
    left = f"epsilon {ledger.document()['remaining']['epsilon']:g}"
    content = {
        "dataset": ledger.dataset,
        "ticket": session.ticket(),
        "facts": [
            ("Model", f"{CHOICES[draft.method].title}: {draft.in_words}"),
            *([("Formula", draft.formula)] if draft.terms else []),
            *((NAMED[name], listed(found)) for name, found in draft.settings.items()),
            ("Intervals", "yes, from half of the rows" if draft.intervals else intervals),
            ("Protects", "one row" if unit is None else f"one {unit}, at most {most} of it"),
            ("Spends", f"epsilon {draft.epsilon:g} at delta {session.delta(ledger):g}"),
            ("Ledger", f"{left} at delta {ledger.budget.delta:g} left before it"),
        ],
        "expected": expected(session, ledger),
        "obstacles": session.obstacles(ledger),
        "problems": problems,
    }
    return View("release.html", content, 422 if problems else 200)


def progress(session: Session, request: StepRequest) -> View | Go:
    """Show how far the release is; when it is over, what it spent."""
    run = session.run
    if run is None:
        return Go("release")
    done = not run.running and session.shelf.find(run.ticket) is not None
    if done and not request.query.get("part"):
        return Go("result")
    content = {
        "run": run,
        "running": run.running,
        "done": done,
        "ended": "" if run.running else session.ended(),
        "unsaved": run.unsaved is not None,
        "wait": run.running,
        "progress": True,
    }
    return View("_progress.html" if request.query.get("part") else "release.html", content)


def cancel(session: Session, _asked: StepRequest) -> Go:
    """Cancel the release that is under way."""
    session.cancel()
    return Go("progress")


# --- result ---------------------------------------------------------------------------------------


def result(session: Session, request: StepRequest) -> View | Go:
    """Show a release: its page, its files, and those before it."""
    releases, ledger = session.shelf.releases(), session.ledger
    if not releases:
        return Go("table")
    shown = _chosen(releases, request)
    ready = shown.file("page.html") is not None
    if not ready:  # have it made, which costs nothing
        document = None if ledger is None else ledger.document()
        page = f"release {shown.number}", shown.record.ticket
        future = session.simulations.page(*page, work.released_page, shown.folder, document)
        ready = shown.file("page.html") is not None or future.done()
    content = {
        "shown": shown,
        "releases": releases,
        "ready": ready,
        "wait": not ready,
        "files": [(name, words) for name, words in FILES.items() if name != "page.html" or ready],
    }
    if request.query.get("part"):
        return View("_result.html", content)
    return View("result.html", content | {"comparison": compared(releases, shown)})


def _chosen(releases: list[KeptRelease], request: StepRequest) -> KeptRelease:
    number = request.whole("number", 0)
    return next((one for one in releases if one.number == number), releases[0])


def result_page(session: Session, request: StepRequest) -> Response:
    """Return the page of a release, for its frame."""
    releases = session.shelf.releases()
    path = _chosen(releases, request).file("page.html") if releases else None
    if path is None:
        return notice(404, "The page is not made yet", "Its model is in the downloads.")
    return framed(path.read_text(encoding="utf-8"))


def download(session: Session, request: StepRequest) -> Response:
    """Hand out one file of a release."""
    name = request.query.get("file", "")
    if name == "unsaved.json" and session.run is not None and session.run.unsaved is not None:
        return Response(session.run.unsaved, headers=_attached("model.json"))
    releases = session.shelf.releases()
    path = _chosen(releases, request).file(name) if releases else None
    if path is None:
        return notice(404, "There is no such file", "Go back, and choose another.")
    return FileResponse(path, media_type="application/octet-stream", headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


# --- releases side by side ------------------------------------------------------------------------


def compared(releases: list[KeptRelease], shown: KeptRelease) -> dict[str, Any] | None:
    """Compare a release with the others of its target; None if there is no other.

    Returns the releases, a column each, and rows for each fact and each feature.
    """
    from dpscreen.models import ModelFileProblem, load
    from dpscreen.models.comparison import compared as beside

    others = [one for one in releases if one.number != shown.number]
    same = [one for one in (shown, *others) if one.record.target == shown.record.target]
    kept, models = [], []
    for one in same[:MOST_COMPARED]:
        with suppress(ModelFileProblem):
            models.append(load(one.folder / "model.json").released())
            kept.append(one)
    if len(kept) < 2:
        return None
    found = beside(models, [str(one.number) for one in kept])
    facts: list[tuple[str, Sequence[str]]] = [
        ("Made", [one.record.at[:16].replace("T", " ") for one in kept]),
        ("Model", [CHOICES[one.record.method].title for one in kept]),
        *((name.capitalize(), cells) for name, cells in found.facts if name not in SHOWN_OTHERWISE),
    ]
    features = []
    for row in found.features[:MOST_FEATURES]:
        cells = [_effect(*pair) for pair in zip(row.effects, row.intervals, strict=True)]
        features.append((f"{shortened(row.feature, 60)}, +{figure(row.step)}", cells))
    n_left_out = max(0, len(found.features) - MOST_FEATURES)
    return {"releases": kept, "facts": facts, "features": features, "n_left_out": n_left_out}


def _effect(effect: float | None, interval: tuple[float, float] | None) -> str:
    """Return an effect with its interval."""
    if effect is None:
        return "–"
    span = "" if interval is None else " ({} to {})".format(*map(figure, interval))
    return figure(effect) + span
