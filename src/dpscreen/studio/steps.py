"""The first four steps: table, question, budget and dry run. None of them reads a cell."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from dpscreen._core.messages import Message, message
from dpscreen._core.words import how_many, number, percent, percent_at_most
from dpscreen.privacy.budget import Budget, posterior
from dpscreen.studio import work
from dpscreen.studio.charts import LEAST, MOST, panels
from dpscreen.studio.draft import KIND_WORDS, SKIP, TERMS, Draft, kind_of, whole
from dpscreen.studio.questions import CHOICES
from dpscreen.studio.server import framed
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.views import Go, StepRequest, View
from dpscreen.tables.columns.base import TRANSFORMS

if TYPE_CHECKING:
    from dpscreen.privacy.ledger import PrivacyLedger

STEPS = {
    "table": "Table",
    "question": "Question",
    "budget": "Budget",
    "dry-run": "Dry run",
    "release": "Release",
    "result": "Result",
}
PER_PAGE = 100


def shared(session: Session, step: str) -> dict[str, Any]:
    """Return what every page shows: where one is, and how far one can go."""
    reached = set(reachable(session))
    return {
        "table_name": session.table.name,
        "step": step,
        "step_number": list(STEPS).index(step) + 1,
        "steps": [(name, title, name in reached) for name, title in STEPS.items()],
        "problems": (),
        "wait": False,
        "changed": work.CHANGED if session.changed else "",
    }


def reachable(session: Session) -> list[str]:
    """Return the steps that can be gone to by now."""
    found = ["table"]
    if _table_is_ready(session):
        found.append("question")
        if not session.draft.problems():
            found.append("budget")
            if session.shelf.ledger.exists():
                found += ["dry-run", "release"]
    return [*found, "result"] if session.shelf.releases() else found


def _table_is_ready(session: Session) -> bool:
    return len(session.draft.usable()) > 1 and not session.draft.column_problems()


# --- table ----------------------------------------------------------------------------------------


def table(session: Session, request: StepRequest) -> View | Go:
    """Show names and kinds, some columns at a time; take what was typed."""
    draft, action = session.draft, request.text("action")
    if request.posted:
        with session.lock:
            _take_columns(session, request)
            draft.save(session.shelf.schema_file)
        if action in ("next", "drop") and _table_is_ready(session):
            return Go("question")
    find = request.text("find")
    places = draft.find(find)
    n_pages = max(1, -(-len(places) // PER_PAGE))
    page = request.whole("to") if request.text("to") else request.whole("page")
    page = 1 if action == "find" else min(max(1, page), n_pages)
    problems = draft.column_problems()
    messages = [text for _, text in problems]
    if action in ("next", "drop") and len(draft.usable()) < 2:
        messages = [message("studio.two-columns")]
    content = {
        "lines": [draft.line(one) for one in places[(page - 1) * PER_PAGE : page * PER_PAGE]],
        "judged": request.posted,
        "kinds": KIND_WORDS,
        "transforms": TRANSFORMS,
        "decimal": draft.decimal,
        "find": find,
        "page": page,
        "n_pages": n_pages,
        "n_columns": len(draft.entries),
        "n_used": len(draft.usable()),
        "n_left": sum(kind_of(draft.entries[place]) == SKIP for place in places),
        "problems": messages[:8] if request.posted else (),
        "n_problems": len(messages),
        "n_wrong": len({place for place, _ in problems}),
    }
    wrong = request.posted and messages and action == "next"
    return View("table.html", content, 422 if wrong else 200)


def _take_columns(session: Session, request: StepRequest) -> None:
    draft = session.draft
    if request.text("decimal") in (".", ","):
        draft.write_decimals(request.text("decimal"))
    for text in request.all("place"):
        if text.isdecimal() and int(text) < len(draft.entries):
            entry = draft.entries[int(text)]
            typed = (request.text(f"{name}-{text}") for name in ("low", "high", "levels"))
            draft.put(int(text), request.text(f"kind-{text}", kind_of(entry)), *typed)
            more = [request.text(f"{name}-{text}") for name in ("transform", "fill")]
            if more[0] in TRANSFORMS:  # the form has them
                draft.put_more(int(text), *more)
            draft.reviewed.add(entry["name"])
    if request.text("action") == "drop":
        for place, _problem in draft.column_problems():
            draft.put(place, SKIP)
    if request.text("action") == "all":
        for place in draft.find(request.text("find")):
            if kind_of(draft.entries[place]) == SKIP:
                typed = (request.text(f"all-{name}") for name in ("low", "high", "levels"))
                draft.put(place, request.text("all-kind"), *typed)


# --- question -------------------------------------------------------------------------------------


def question(session: Session, request: StepRequest) -> View | Go:
    """Ask for target, features, unit and model."""
    if not _table_is_ready(session):
        return Go("table")
    session.simulations.start()
    draft, problems, edited, refusal = session.draft, list[Message](), False, ""
    if request.posted:
        with session.lock:
            problems = _take_question(session, request)
            edited, refusal = _take_term(draft, request)
            draft.save(session.shelf.schema_file)
        problems = [] if edited else problems
        if not (problems or edited):
            return Go("budget")
    chosen, first_time = set(draft.features), draft.block.get("features") is None
    content = {
        "usable": draft.usable(),
        "target": draft.target,
        "outcomes": draft.outcomes(),
        "is_feature": lambda name: first_time or name in chosen,
        "units": draft.possible_units(),
        "unit": draft.block.get("unit"),
        "rows_per_unit": draft.block.get("rows_per_unit") or 1,
        "models": CHOICES.values(),
        "draft": draft,
        "numbers": draft.numbers(),
        "typed": request.text,
        "edited": edited,
        "refusal": refusal,
        "problems": problems,
    }
    return View("question.html", content, 422 if problems else 200)


def _take_question(session: Session, request: StepRequest) -> list[Message]:
    draft = session.draft
    usable = draft.usable()
    places = {int(one) for one in request.all("feature") if one.isdecimal()}
    draft.ask(
        _picked(usable, request.text("target")),
        [name for place, name in enumerate(usable) if place in places],
        _picked(draft.possible_units(), request.text("unit")),
        request.text("rows-per-unit"),
    )
    known = {str(place): name for place, name in enumerate(usable)}
    known |= {f"term-{place}": text for place, text in enumerate(draft.terms)}
    for name in draft.named:
        draft.named[name] = {known[one] for one in request.all(name) if one in known}
    if request.text("model") in CHOICES:
        draft.method = request.text("model")
    choice = CHOICES[draft.method]
    draft.intervals = not choice.table and draft.method in request.all("intervals")
    rows = request.text("rows").strip()
    draft.rows = whole(rows) if rows else None
    draft.rows_public = request.text("rows-public") == "on" and draft.rows is not None
    problems = draft.problems()
    if rows and not draft.rows:
        problems = [*problems, message("studio.rows-not-a-number")]
    if choice.family.n_classes and request.text("rate").strip():
        percent = request.number("rate")
        if percent is None or not 0 < percent < 100:
            return [*problems, message("studio.rate-not-a-share")]
        draft.rate = percent / 100
    return problems


def _take_term(draft: Draft, request: StepRequest) -> tuple[bool, str]:
    """Add or remove a term, or just show the formula: whether so, and what is wrong with it."""
    kind, refusal, usable = request.text("term"), "", draft.usable()
    if kind in TERMS:
        pair = tuple(_picked(usable, request.text(f"{one}-column")) for one in ("first", "second"))
        single = _picked(draft.numbers(), request.text("column")), ""
        columns = pair if kind == "interaction" else single
        refusal = draft.add_term(kind, *columns, knots=request.text("knots"))
    if request.text("remove").isdecimal():
        draft.remove_term(request.whole("remove"))
    return bool({"term", "remove"} & set(request.form)), refusal


def _picked(names: list[str], place: str) -> str:
    """Return the name at a place; "" if nothing was picked. Names never travel as values."""
    return names[int(place)] if place.isdecimal() and int(place) < len(names) else ""


# --- budget ---------------------------------------------------------------------------------------


def budget(session: Session, request: StepRequest) -> View | Go:
    """Grant a budget once; then choose what one release may spend, with what it buys."""
    if "budget" not in reachable(session):
        return Go("question")
    problems: tuple[str, ...] = ()
    if request.posted:
        try:
            with session.lock:
                return _take_budget(session, request)
        except Problems as found:
            problems = found.messages
    ledger = session.ledger
    if ledger is None:
        content = {"ledger": None, "dataset": request.text("dataset") or session.table.stem}
    else:
        content = _live_content(session, ledger, request, session.delta(ledger)) | {
            "ledger": ledger.document(),
            "delta": request.text("delta") or f"{session.delta(ledger):g}",
            "least": LEAST,
            "most": MOST,
        }
    return View("budget.html", content | {"problems": problems}, 422 if problems else 200)


def _take_budget(session: Session, request: StepRequest) -> Go:
    epsilon, delta = request.number("epsilon"), request.number("delta")
    if epsilon is None or delta is None:
        raise Problems("Epsilon and delta must be numbers, such as 1 and 1e-6.")
    try:
        Budget(epsilon, delta)
    except ValueError as problem:
        raise Problems(session.said(problem)) from None
    if request.text("action") == "grant":
        session.grant(request.text("dataset"), epsilon, delta)
        session.draft.epsilon = min(session.draft.epsilon, epsilon)
        return Go("budget")
    session.draft.epsilon, session.draft.delta = epsilon, delta
    ledger = session.ledger
    if ledger is not None and (obstacles := session.obstacles(ledger)):
        raise Problems(*obstacles)
    return Go("dry-run")


def live(session: Session, request: StepRequest) -> View:
    """Answer a moved ε: read off the curve, so at once."""
    ledger, typed = session.granted, request.number("delta")
    delta = typed if typed is not None and 0 < typed < 1 else session.delta(ledger)
    return View("_live.html", _live_content(session, ledger, request, delta))


def _live_content(
    session: Session, ledger: PrivacyLedger, request: StepRequest, delta: float
) -> dict[str, Any]:
    from dpscreen.privacy import ZCDP
    from dpscreen.privacy.ledger.export import affordable_epsilon

    epsilon = session.draft.epsilon
    with suppress(ValueError):  # no such budget
        epsilon = Budget(request.number("epsilon") or 0.0, session.delta(ledger)).epsilon
    found: dict[str, Any] = {"panels": [], "again": 0, "pending": 0, "rows": session.draft.rows}
    setting = session.setting(delta)
    if setting is not None:
        features = how_many(setting.n_features, "feature")
        supposed = CHOICES[setting.method].supposed.format(rate=percent(session.draft.rate))
        found["supposed"] = f"tables of {number(setting.n_rows)} rows and {features}{supposed}"
        curve, pending = session.simulations.curve(setting)
        found["panels"] = panels(curve, epsilon)
        found |= {"again": 700 if pending else 0, "pending": pending}
    try:
        enough = ZCDP.within(Budget(epsilon, delta)) <= ledger.remaining
        left = f"The ledger has epsilon {affordable_epsilon(ledger.remaining, delta):g} left"
        fits = f"{left} at this delta: {'enough' if enough else 'too little'}."
    except ValueError:
        fits = "So small a budget cannot be divided."
    return found | {"epsilon": epsilon, "meaning": meaning(epsilon, delta), "fits": fits}


def expected(session: Session, ledger: PrivacyLedger) -> list[tuple[str, str]]:
    """Return what is simulated of the budget that is chosen, as far as it is known by now."""
    setting = session.setting(session.delta(ledger))
    if setting is None:
        return []
    curve, _pending = session.simulations.curve(setting, ask=False)
    return [(one.title, one.in_words) for one in panels(curve, session.draft.epsilon)]


def meaning(epsilon: float, delta: float) -> tuple[str, str]:
    """Say in plain words what ε and δ promise (docs/theory/mechanisms.md, Lemma 19)."""
    sure = percent_at_most(posterior(0.5, epsilon))
    few = f"{1 / delta:,.0f}".replace(",", "\u202f")
    return (
        f"Someone who is 50 % sure that a person is in the data can become at most {sure} sure by "
        "seeing the model, even if they know everybody else's rows.",
        f"Delta bounds the probability mass for which this may fail: one part in {few}. It should "
        "be far smaller than one over the number of rows.",
    )


# --- dry run --------------------------------------------------------------------------------------


def dry_run(session: Session, request: StepRequest) -> View | Go:
    """Fit simulated rows, and show the page that would come out."""
    if "dry-run" not in reachable(session):
        return Go("budget")
    from dpscreen.planning.fitting import FitFailed

    future, problem = _dry_run_future(session), None
    error = future.exception() if future.done() and not future.cancelled() else None
    if isinstance(error, FitFailed):  # simulated rows hold no secret, but paths may be in it
        problem = session.said(error)
    elif error is not None:
        problem = f"The dry run failed ({type(error).__name__})."
    content = {
        "ready": future.done() and problem is None,
        "failure": problem,
        "wait": not future.done(),
        "rows": session.draft.rows,
        "summary": session.draft.in_words,
        "key": session.draft.fingerprint,
    }
    return View("_dry-run.html" if request.query.get("part") else "dry-run.html", content)


def _dry_run_future(session: Session) -> Future[str]:
    order, draft = session.order(session.granted), session.draft
    key = draft.fingerprint
    return session.simulations.page("dry run", key, work.dry_run_page, order, draft.rows)


def dry_run_page(session: Session, _asked: StepRequest) -> Response | Go:
    """Return the page of the dry run, for its frame."""
    if "dry-run" not in reachable(session):
        return Go("../budget")
    return framed(_dry_run_future(session).result(timeout=120))
