"""How quick the studio is, in Chromium: `python -m benchmarks studio`, or with a number of starts.

Beside it, a bare page of Python's own server in the same browser: what the browser takes by itself.
"""

from __future__ import annotations

import http.server
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.timing import repeats
from tools.browser import Browser, browser
from tools.studio import NAMES, Studio, studio, write_table

PAINTED = "performance.timeOrigin + performance.getEntriesByType('paint').at(-1)?.startTime"
MOVED = """(async () => {
  const field = document.querySelector('#epsilon'), found = [];
  for (const epsilon of ['0.3', '2', '0.7', '9', '0.15', '1.2', '4', '0.5']) {
    const start = performance.now(), was = document.querySelector('.live');
    field.value = epsilon;
    field.dispatchEvent(new Event('input'));
    while (document.querySelector('.live') === was) await new Promise((go) => setTimeout(go, 1));
    found.push((performance.now() - start) / 1000);
    await new Promise((go) => setTimeout(go, 150));
  }
  return found;
})()"""


def main() -> None:
    """Start the studio of a small and of a wide table some times, and move ε."""
    starts = repeats(5)
    with tempfile.TemporaryDirectory() as place, browser() as tab, bare_page() as bare:
        tab.resize(1280)
        small = write_table(Path(place) / "survey.csv", 100)
        wide = Path(place) / "wide.csv"
        wide.write_text(",".join(f"column_{k}" for k in range(2000)) + "\n")
        for name, table in ((f"{len(NAMES)} columns", small), ("2000 columns", wide)):
            found = [one_start(tab, table, bare) for _ in range(starts)]
            for k, what in enumerate(("server up", "first paint", "a bare page")):
                show(f"{name}: {what}", [times[k] for times in found])
        for model in ("private-lasso", "private-ols", "private-logistic"):
            with studio(small) as running:
                show(f"{model}: a moved epsilon", moved(tab, running, model))


def show(what: str, times: list[float]) -> None:
    """Print the median and the longest of some times."""
    print(f"{what:36} {median(times):.3f} s   longest {max(times):.3f} s", flush=True)


def one_start(tab: Browser, table: Path, bare: str) -> tuple[float, float, float]:
    """Return how long it takes until the address is printed, until the page, and a bare page."""
    start = time.time()
    with studio(table) as running:
        up = time.time() - start
        return up, painted(tab, running.address, "table"), painted(tab, bare, "bare")


def painted(tab: Browser, address: str, step: str) -> float:
    """Return the time from asking for a page until it is painted."""
    tab.open("about:blank")
    start = time.time()
    tab.send("Page.navigate", url=address)
    tab.until(f"document.body?.dataset.step == '{step}' && {PAINTED}")
    return tab.evaluate(PAINTED) / 1000 - start


def moved(tab: Browser, running: Studio, model: str) -> list[float]:
    """Go to the budget, and return how long answers take, the first while points are simulated."""
    target = "1" if model == "private-logistic" else "3"
    tab.open(running.address)
    tab.until("document.body?.dataset.step == 'table'")
    running.cookie = "; ".join(
        f"{one['name']}={one['value']}" for one in tab.send("Network.getCookies")["cookies"]
    )
    running.home = "/" + tab.evaluate("location.pathname").split("/")[1]
    running.declare()
    running.question(target=target, model=model, rows="6000")
    running.grant()
    tab.open(f"http://{running.host}{running.home}/budget")
    tab.until("document.querySelector('.panels svg')", 170)
    found = []
    for _ in range(2):
        answer = tab.send(
            "Runtime.evaluate", expression=MOVED, awaitPromise=True, returnByValue=True
        )
        found += answer["result"]["value"]
        tab.until("document.querySelector('.live').dataset.again == '0'", 170)
    return found


@contextmanager
def bare_page() -> Iterator[str]:
    """Serve a page with nothing on it but a heading, and yield its address."""

    class Bare(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><body data-step=bare><h1>Bare</h1>")

        def log_message(self, *_told: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bare) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
