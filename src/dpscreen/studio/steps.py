"""The first four steps: table, question, budget and dry run. None of them reads a cell."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from dpscreen._core.words import how_many, number, percent, percent_at_most
from dpscreen.studio import work
from dpscreen.studio.charts import LEAST, MOST, panels
from dpscreen.studio.draft import KIND_WORDS, LEAVE_OUT, SKIP, kind_of, whole
from dpscreen.studio.questions import CHOICES, choice_of
from dpscreen.studio.session import Problems, Session
from dpscreen.studio.views import Go, Part, Shown, StepRequest, View

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetCase
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


def table(session: Session, asked: StepRequest) -> View | Go:
    """Show names and kinds, some columns at a time; take what was typed."""
    draft = session.draft
    if asked.posted:
        with session.lock:
            _take_columns(session, asked)
            draft.save(session.shelf.schema_file)
        if asked.text("action") in ("next", "drop") and _table_is_ready(session):
            return Go("question")
    return _table_view(session, asked)


def _take_columns(session: Session, asked: StepRequest) -> None:
    draft = session.draft
    if asked.text("decimal") in (".", ","):
        draft.write_decimals(asked.text("decimal"))
    for text in asked.all("place"):
        if text.isdecimal() and int(text) < len(draft.entries):
            entry = draft.entries[int(text)]
            typed = (asked.text(f"{name}-{text}") for name in ("low", "high", "levels"))
            draft.put(int(text), asked.text(f"kind-{text}", kind_of(entry)), *typed)
            draft.seen.add(entry["name"])
    if asked.text("action") == "drop":
        for place, _problem in draft.column_problems():
            draft.put(place, SKIP, "", "", "")
    if asked.text("action") == "all":
        for place in draft.find(asked.text("find")):
            if kind_of(draft.entries[place]) == SKIP:
                typed = (asked.text(f"all-{name}") for name in ("low", "high", "levels"))
                draft.put(place, asked.text("all-kind"), *typed)


def _table_view(session: Session, asked: StepRequest) -> View:
    draft, find = session.draft, asked.text("find")
    if asked.text("action") == "find":
        page = 1
    else:
        page = max(1, asked.whole("to") if asked.text("to") else asked.whole("page"))
    places = draft.find(find)
    n_pages = max(1, -(-len(places) // PER_PAGE))
    page = min(page, n_pages)
    told = [text for _, text in draft.column_problems()]
    if asked.text("action") in ("next", "drop") and len(draft.usable()) < 2:
        told = ["Say what at least two columns hold: a target and a feature."]
    content = {
        "lines": draft.lines(places[(page - 1) * PER_PAGE : page * PER_PAGE]),
        "judged": asked.posted,
        "kinds": KIND_WORDS,
        "decimal": draft.decimal,
        "find": find,
        "page": page,
        "n_pages": n_pages,
        "n_columns": len(draft.entries),
        "n_used": len(draft.usable()),
        "n_left": sum(kind_of(draft.entries[place]) == SKIP for place in places),
        "problems": told[:8] if asked.posted else (),
        "n_problems": len(told),
        "n_wrong": len({place for place, _ in draft.column_problems()}),
    }
    wrong = asked.posted and told and asked.text("action") == "next"
    return View("table.html", content, 422 if wrong else 200)


# --- question -------------------------------------------------------------------------------------


def question(session: Session, asked: StepRequest) -> View | Go:
    """Ask for target, features, unit and model."""
    if not _table_is_ready(session):
        return Go("table")
    session.simulations.start()
    problems: list[str] = []
    if asked.posted:
        with session.lock:
            problems = _take_question(session, asked)
            session.draft.save(session.shelf.schema_file)
        if not problems:
            return Go("budget")
    return _question_view(session, problems)


def _take_question(session: Session, asked: StepRequest) -> list[str]:
    draft = session.draft
    usable = draft.usable()
    places = {int(one) for one in asked.all("feature") if one.isdecimal()}
    features = [name for place, name in enumerate(usable) if place in places]
    units = draft.possible_units()
    draft.block["missing_target"] = LEAVE_OUT if asked.text("leave-out") == "on" else "fill"
    draft.ask(
        _picked(usable, asked.text("target")),
        features,
        _picked(units, asked.text("unit")),
        asked.text("rows-per-unit"),
    )
    draft.method = next(
        (one.method for one in CHOICES if one.method == asked.text("model")), draft.method
    )
    draft.intervals = asked.text("intervals") == "on" and choice_of(draft.method).offers_intervals
    rows = asked.text("rows").strip()
    draft.rows = whole(rows) if rows else None
    draft.rows_public = asked.text("rows-public") == "on" and draft.rows is not None
    problems = draft.problems()
    if rows and not draft.rows:
        problems = [*problems, "The number of rows is no number."]
    return [*problems, *_take_rate(session, asked)]


def _take_rate(session: Session, asked: StepRequest) -> list[str]:
    """Take the supposed share of a yes, which is asked for where the outcome is one."""
    if not choice_of(session.draft.method).outcomes or not asked.text("rate").strip():
        return []
    percent = asked.number("rate")
    if percent is None or not 0 < percent < 100:
        return ["The share of yes must be a number between 0 and 100 %."]
    session.draft.rate = percent / 100
    return []


def _picked(names: list[str], place: str) -> str:
    """Return the name at a place; "" if nothing was picked. Names never travel as values."""
    return names[int(place)] if place.isdecimal() and int(place) < len(names) else ""


def _question_view(session: Session, problems: list[str]) -> View:
    draft = session.draft
    chosen = set(draft.features)
    first_time = draft.block.get("features") is None
    content = {
        "usable": draft.usable(),
        "target": draft.target,
        "outcomes": draft.outcomes(),
        "is_feature": lambda name: first_time or name in chosen,
        "units": draft.possible_units(),
        "unit": draft.block.get("unit"),
        "rows_per_unit": draft.block.get("rows_per_unit") or 1,
        "models": CHOICES,
        "draft": draft,
        "problems": problems,
    }
    return View("question.html", content, 422 if problems else 200)


# --- budget ---------------------------------------------------------------------------------------


def budget(session: Session, asked: StepRequest) -> View | Go:
    """Grant a budget once; then choose what one release may spend, seeing what it buys."""
    if "budget" not in reachable(session):
        return Go("question")
    problems: list[str] = []
    if asked.posted:
        try:
            with session.lock:
                return _take_budget(session, asked)
        except Problems as found:
            problems = list(found.told)
    return _budget_view(session, asked, problems)


def _take_budget(session: Session, asked: StepRequest) -> Go:
    epsilon, delta = asked.number("epsilon"), asked.number("delta")
    if epsilon is None or delta is None:
        raise Problems(("Epsilon and delta must be numbers, such as 1 and 1e-6.",))
    if problem := _refused(session, epsilon, delta):
        raise Problems((problem,))
    if asked.text("action") == "grant":
        session.grant(asked.text("dataset"), epsilon, delta)
        session.draft.epsilon = min(session.draft.epsilon, epsilon)
        return Go("budget")
    session.draft.epsilon, session.draft.delta = epsilon, delta
    ledger = session.ledger
    obstacles = [] if ledger is None else session.obstacles(ledger)
    if obstacles:
        raise Problems(tuple(obstacles))
    return Go("dry-run")


def _budget_view(session: Session, asked: StepRequest, problems: list[str]) -> View:
    ledger = session.ledger
    status = 422 if problems else 200
    if ledger is None:
        name = asked.text("dataset") or session.table.stem
        return View("budget.html", {"ledger": None, "dataset": name, "problems": problems}, status)
    epsilon = _shown_epsilon(session, asked)
    content = _live_content(session, ledger, epsilon) | {
        "ledger": ledger.document(),
        "delta": asked.text("delta") or f"{session.delta(ledger):g}",
        "least": LEAST,
        "most": MOST,
        "problems": problems,
    }
    return View("budget.html", content, status)


def _shown_epsilon(session: Session, asked: StepRequest) -> float:
    epsilon = asked.number("epsilon")
    delta = session.delta(session.granted)
    if epsilon is None or _refused(session, epsilon, delta):
        return session.draft.epsilon
    return epsilon


def _refused(session: Session, epsilon: float, delta: float) -> str | None:
    """Return why there is no such budget; None if there is."""
    from dpscreen.privacy import Budget

    try:
        Budget(epsilon, delta)
    except ValueError as problem:
        return session.said(problem)
    return None


def live(session: Session, asked: StepRequest) -> Part:
    """Answer a moved ε: read off the curve, so at once."""
    content = _live_content(session, session.granted, _shown_epsilon(session, asked), asked)
    return Part("_live.html", content)


def _live_content(
    session: Session, ledger: PrivacyLedger, epsilon: float, asked: StepRequest | None = None
) -> dict[str, Any]:
    delta = session.delta(ledger)
    typed = None if asked is None else asked.number("delta")
    delta = typed if typed is not None and 0 < typed < 1 else delta
    case = session.case(delta)
    found: dict[str, Any] = {"panels": [], "again": 0, "pending": 0, "rows": session.draft.rows}
    if case is not None:
        found["supposed"] = supposed(case)
        curve, pending = session.simulations.curve(case)
        found["panels"] = panels(curve, epsilon)
        found |= {"again": 700 if pending else 0, "pending": pending}
    return found | {
        "epsilon": epsilon,
        "meaning": meaning(epsilon, delta),
        "fits": _fits(ledger, epsilon, delta),
    }


def expected(session: Session, ledger: PrivacyLedger) -> list[tuple[str, str]]:
    """Return what is simulated of the budget that is chosen, as far as it is known by now."""
    case = session.case(session.delta(ledger))
    if case is None:
        return []
    curve, _pending = session.simulations.curve(case, ask=False)
    return [(one.title, one.in_words) for one in panels(curve, session.draft.epsilon)]


def supposed(case: BudgetCase) -> str:
    """Say what is simulated."""
    known = f"tables of {number(case.n_rows)} rows and {how_many(case.n_features, 'feature')}"
    choice = choice_of(case.method)
    if choice.outcomes:
        whose = "all features together" if choice.table else "a feature that matters"
        return (
            f"{known}, with a yes in {percent(case.rate)} of rows; a deviation of {whose} "
            f"multiplies the odds by {2.7 if choice.table else 1.6}."
        )
    which = "the features" if choice.table else "those that matter"
    return f"{known}; {which} explain half of the target's variance together."


def meaning(epsilon: float, delta: float) -> tuple[str, str]:
    """Say in plain words what ε and δ promise (docs/privacy.md, Lemma 19)."""
    from dpscreen.privacy.budget import posterior

    sure = percent_at_most(posterior(0.5, epsilon))
    few = f"{1 / delta:,.0f}".replace(",", "\u202f")
    return (
        f"Whoever is 50 % sure that a person is in the data can become at most {sure} sure by "
        "seeing the model, even if they know everybody else's rows.",
        f"Delta bounds how much of the promise may fail: one part in {few}. It should be far "
        "smaller than one over the number of rows.",
    )


def _fits(ledger: PrivacyLedger, epsilon: float, delta: float) -> str:
    from dpscreen.privacy import ZCDP, Budget
    from dpscreen.privacy.ledger.export import affordable_epsilon

    left = affordable_epsilon(ledger.remaining, delta)
    try:
        fits = ZCDP.within(Budget(epsilon, delta)) <= ledger.remaining
    except ValueError:
        return "So small a budget cannot be divided up."
    enough = "enough" if fits else "too little"
    return f"The ledger has epsilon {left:g} left at this delta: {enough}."


# --- dry run --------------------------------------------------------------------------------------


def dry_run(session: Session, asked: StepRequest) -> View | Part | Go:
    """Fit simulated rows, and show the page that would come out."""
    if "dry-run" not in reachable(session):
        return Go("budget")
    future = _dry_run_future(session)
    problem = _problem(session, future)
    content = {
        "ready": future.done() and problem is None,
        "failure": problem,
        "wait": not future.done(),
        "rows": session.draft.rows,
        "summary": session.draft.in_words,
        "key": session.draft.fingerprint,
    }
    if asked.query.get("part"):
        return Part("_dry-run.html", content)
    return View("dry-run.html", content)


def _dry_run_future(session: Session) -> Future[str]:
    order = session.order(session.granted)
    key = session.draft.fingerprint
    return session.simulations.page("dry run", key, work.dry_run_page, order, session.draft.rows)


def _problem(session: Session, future: Future[str]) -> str | None:
    if not future.done() or future.cancelled():
        return None
    error = future.exception()
    if error is None:
        return None
    from dpscreen.planning.fitting import FitFailed

    known = isinstance(error, FitFailed)  # simulated rows hold no secret, but paths may be told
    return session.said(error) if known else f"The dry run failed ({type(error).__name__})."


def dry_run_page(session: Session, _asked: StepRequest) -> Shown | Go:
    """Return the page of the dry run, for its frame."""
    if "dry-run" not in reachable(session):
        return Go("../budget")
    return Shown(_dry_run_future(session).result(timeout=120))
