"""The pictures of docs/guide/studio.md, by Chromium: `python docs/images/studio.py`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from tools.browser import Browser, browser  # noqa: E402
from tools.studio import studio, write_table  # noqa: E402

DECLARED = {
    "kind-0": "skip", "kind-1": "number", "low-1": "0", "high-1": "120", "kind-2": "category",
    "levels-2": "f, m", "kind-3": "number", "low-3": "0", "high-3": "10",
    "kind-4": "number", "low-4": "0", "high-4": "20000",
}  # fmt: skip


def fill(tab: Browser, values: dict[str, str]) -> None:
    """Set fields of a form."""
    for name, value in values.items():
        tab.evaluate(
            f"(() => {{ const e = document.querySelector('[name=\"{name}\"]');"
            f" e.value = '{value}'; e.dispatchEvent(new Event('change'));"
            " e.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )


def shoot(tab: Browser, name: str) -> None:
    """Take a picture from the top of the page."""
    tab.evaluate("(scrollTo({top: 0, behavior: 'instant'}), document.activeElement.blur())")
    time.sleep(2)  # until what was in the middle of changing has changed
    tab.picture(HERE / f"studio-{name}.png")


def go_on(tab: Browser, step: str) -> None:
    """Press the button that leads on, and wait for the next step."""
    tab.click("#next")
    tab.until(f"document.body?.dataset.step == '{step}' && document.readyState == 'complete'")


def walk(tab: Browser) -> None:
    """Go the whole way, with a picture of each step."""
    tab.until("document.querySelector('.scripted-page #columns')")
    fill(tab, DECLARED)
    shoot(tab, "1-table")
    go_on(tab, "question")
    fill(tab, {"target": "3", "rows": "6000"})
    tab.click("#intervals-private-lasso")
    shoot(tab, "2-question")
    go_on(tab, "budget")
    tab.click("#next")
    tab.until("document.querySelector('.live')?.dataset.again == '0'", 300)
    shoot(tab, "3-budget")
    go_on(tab, "dry-run")
    tab.until("document.querySelector('iframe')", 300)
    shoot(tab, "4-dry-run")
    go_on(tab, "release")
    shoot(tab, "5-release")
    tab.click("#dataset")
    tab.type("survey")
    tab.click("#next")
    tab.until("document.body?.dataset.step == 'result' && document.querySelector('iframe')", 300)
    shoot(tab, "6-result")


def main() -> None:
    """Draw all six."""
    with tempfile.TemporaryDirectory() as place:
        table = write_table(Path(place) / "survey.csv", 6000)
        with studio(table) as running, browser() as tab:
            tab.resize(1000, 820)
            tab.open(running.address)
            walk(tab)


if __name__ == "__main__":
    main()
