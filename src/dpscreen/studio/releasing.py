"""The last two steps: the release, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import FileResponse, Response

from dpscreen._core.words import figure, how_many, shortened
from dpscreen.studio import work
from dpscreen.studio.draft import Draft
from dpscreen.studio.guard import notice
from dpscreen.studio.questions import choice_of
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.shelf import FILES, KeptRelease
from dpscreen.studio.steps import expected, reachable
from dpscreen.studio.views import Go, Part, Shown, StepRequest, View

if TYPE_CHECKING:
    from dpscreen.models.comparison import ComparedFeature

MOST_COMPARED, MOST_FEATURES = 5, 40
SAID = ("method", "target", "date")
"""Facts of a comparison that are said otherwise."""
WRONG_NAME = "That is not the data set's name. Nothing was started."


# --- release --------------------------------------------------------------------------------------


def release(session: Session, asked: StepRequest) -> View | Go:
    """Start a release: once for a ticket, and only with the data set's name typed."""
    if session.run is not None and session.run.running:
        return Go("progress")
    if "release" not in reachable(session):
        return Go("budget")
    problems: tuple[str, ...] = ()
    if asked.posted:
        try:
            return _start(session, asked)
        except Problems as found:
            problems = found.told
    return _release_view(session, problems)


def _start(session: Session, asked: StepRequest) -> Go:
    if asked.text("dataset").strip() != session.granted.dataset.strip():
        raise Problems((WRONG_NAME,))
    session.release(asked.text("ticket"))
    return Go("progress")


def _release_view(session: Session, problems: tuple[str, ...]) -> View:
    ledger, draft = session.granted, session.draft
    unit, most = draft.block.get("unit"), how_many(draft.block.get("rows_per_unit") or 1, "row")
    choice = choice_of(draft.method)
    content = {
        "dataset": ledger.dataset,
        "ticket": session.ticket(),
        "facts": [
            ("Model", f"{choice.title}: {draft.in_words}"),
            ("Intervals", _intervals(draft)),
            ("Protects", "one row" if unit is None else f"one {unit}, at most {most} of it"),
            ("Spends", f"epsilon {draft.epsilon:g} at delta {session.delta(ledger):g}"),
            (
                "Ledger",
                f"epsilon {ledger.document()['remaining']['epsilon']:g} at delta "
                f"{ledger.budget.delta:g} left before it",
            ),
        ],
        "expected": expected(session, ledger),
        "obstacles": session.obstacles(ledger),
        "problems": problems,
    }
    return View("release.html", content, 422 if problems else 200)


def _intervals(draft: Draft) -> str:
    if draft.intervals:
        return "yes, from half of the rows"
    return "yes, of every coefficient that the rows allow" if draft.has_intervals else "no"


def progress(session: Session, asked: StepRequest) -> View | Part | Go:
    """Show how far the release is; when it is over, what it spent."""
    run = session.run
    if run is None:
        return Go("release")
    done = not run.running and session.shelf.find(run.ticket) is not None
    if done and not asked.query.get("part"):
        return Go("result")
    content = {
        "run": run,
        "running": run.running,
        "done": done,
        "ended": "" if run.running else session.ended(),
        "unsaved": run.unsaved is not None,
        "wait": run.running,
    }
    if asked.query.get("part"):
        return Part("_progress.html", content)
    return View("release.html", content | {"progress": True})


def cancel(session: Session, _asked: StepRequest) -> Go:
    """Cancel the release that is under way."""
    session.cancel()
    return Go("progress")


# --- result ---------------------------------------------------------------------------------------


def result(session: Session, asked: StepRequest) -> View | Part | Go:
    """Show a release: its page, its files, and those before it."""
    releases = session.shelf.releases()
    if not releases:
        return Go("table")
    shown = _chosen(releases, asked)
    ready = shown.file("page.html") is not None or _page(session, shown)
    content = {
        "shown": shown,
        "releases": releases,
        "ready": ready,
        "wait": not ready,
        "files": [(name, words) for name, words in FILES.items() if name != "page.html" or ready],
        "comparison": None,
    }
    if asked.query.get("part"):
        return Part("_result.html", content)
    return View("result.html", content | {"comparison": compared(releases, shown)})


def _chosen(releases: list[KeptRelease], asked: StepRequest) -> KeptRelease:
    number = asked.whole("number", 0)
    return next((one for one in releases if one.number == number), releases[0])


def _page(session: Session, shown: KeptRelease) -> bool:
    """Have the page made, which costs nothing; whether it is there by now."""
    ledger = session.ledger
    document = None if ledger is None else ledger.document()
    future = session.simulations.page(
        f"release {shown.number}", shown.record.ticket, work.released_page, shown.folder, document
    )
    return shown.file("page.html") is not None or future.done()


def result_page(session: Session, asked: StepRequest) -> Shown | Response:
    """Return the page of a release, for its frame."""
    releases = session.shelf.releases()
    path = _chosen(releases, asked).file("page.html") if releases else None
    if path is None:
        return notice(404, "The page is not made yet", "Its model is in the downloads.")
    return Shown(path.read_text(encoding="utf-8"))


def download(session: Session, asked: StepRequest) -> Response:
    """Hand out one file of a release."""
    name = asked.query.get("file", "")
    if name == "unsaved.json" and session.run is not None and session.run.unsaved is not None:
        return Response(session.run.unsaved, headers=_attached("model.json"))
    releases = session.shelf.releases()
    path = _chosen(releases, asked).file(name) if releases else None
    if path is None:
        return notice(404, "There is no such file", "Go back, and choose another.")
    return FileResponse(path, media_type="application/octet-stream", headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


# --- releases side by side ------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Releases of one target side by side: a column each, a row for each fact and feature."""

    releases: list[KeptRelease]
    facts: list[tuple[str, list[str]]]
    features: list[tuple[str, list[str]]]
    n_left_out: int


def compared(releases: list[KeptRelease], shown: KeptRelease) -> Compared | None:
    """Compare a release with the others of its target; None if there is no other."""
    same = [one for one in releases if one.record.target == shown.record.target]
    others = [one for one in same if one.number != shown.number]
    if not others:
        return None
    kept = [shown, *others][:MOST_COMPARED]
    models = {one.number: _loaded(one) for one in kept}
    kept = [one for one in kept if models[one.number] is not None]
    if len(kept) < 2:
        return None
    from dpscreen.models.comparison import compared as beside

    found = beside(
        [models[one.number].released() for one in kept], [str(one.number) for one in kept]
    )
    facts = [
        ("Made", [one.record.at[:16].replace("T", " ") for one in kept]),
        ("Model", [choice_of(one.record.method).title for one in kept]),
        *((name.capitalize(), list(told)) for name, told in found.facts if name not in SAID),
    ]
    rows = [_row(one) for one in found.features[:MOST_FEATURES]]
    return Compared(kept, facts, rows, max(0, len(found.features) - MOST_FEATURES))


def _row(one: ComparedFeature) -> tuple[str, list[str]]:
    """Return a feature with its step, and its effects with their intervals."""
    told = [
        "–" if effect is None else figure(effect) + _span(interval)
        for effect, interval in zip(one.effects, one.intervals, strict=True)
    ]
    return f"{shortened(one.feature, 60)}, +{figure(one.step)}", told


def _span(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({figure(interval[0])} to {figure(interval[1])})"


def _loaded(release: KeptRelease) -> Any:
    from dpscreen.models import ModelFileProblem, load

    try:
        return load(release.folder / "model.json")
    except ModelFileProblem:
        return None
