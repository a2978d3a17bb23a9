"""The studio as a real process, a table for it, and a client that says what it is told to."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from dpscreen.studio.app import _rendered
from dpscreen.studio.draft import Draft
from dpscreen.studio.session import Session
from dpscreen.studio.shelf import Shelf
from dpscreen.studio.views import StepRequest
from tools.command import command_line

SECRET = "Zebedee-8675309"
NAMES = ("patient_id", "age", "sex", "score", "cost")
DECLARED = {
    "kind-3": "number", "low-3": "0", "high-3": "10",
    "kind-4": "number", "low-4": "0", "high-4": "20000",
    "kind-2": "category", "levels-2": "f, m", "kind-1": "number", "low-1": "0", "high-1": "120",
    "kind-0": "skip",
}  # fmt: skip


def write_table(path: Path, n_rows: int = 600, *, seed: int = 0) -> Path:
    """Write rows, each with a secret in a column that is not used, and one in a cell that is."""
    rng = np.random.default_rng(seed)
    age, score = rng.integers(18, 90, n_rows), rng.uniform(0, 10, n_rows)
    cost = 50 * age + 300 * score + rng.normal(0, 500, n_rows)
    lines = [
        f"{SECRET},{a},{'fm'[i % 2]},{s:.3f},{c:.2f}"
        for i, (a, s, c) in enumerate(zip(age, score, cost, strict=True))
    ]
    lines[3] = f"{SECRET},{SECRET},{SECRET},867.5309,8675.309"
    path.write_text("\n".join([",".join(NAMES), *lines, ""]))
    return path


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def step(self) -> str:
        """Return the step that a page is of."""
        return (re.findall(r'data-step="([^"]*)"', self.text) or [""])[0]


@dataclass
class Studio:
    """A running studio, and what it has said so far."""

    process: subprocess.Popen[str]
    address: str
    errors: Path
    folder: Path
    heard: list[str] = field(default_factory=list)
    cookie: str = ""
    home: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """Send one request, with these headers and no others; names are written with _ for -."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.host.split(":")[1]))
        told = {"Host": self.host} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        content = (body or "").encode()
        if method == "POST":
            told |= {"Content-Length": str(len(content))}
        for name, value in told.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        found = connection.getresponse()
        text = found.read().decode()
        connection.close()
        self.heard += [text, str(found.getheaders())]
        return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, text)

    def enter(self) -> None:
        """Exchange the token for the cookie."""
        entry = urlsplit(self.address)
        answer = self.ask("GET", f"{entry.path}?{entry.query}")
        assert answer.status == 200
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        self.home = re.findall(r"url=(/[^/]+)/", answer.text)[0]

    def get(self, page: str) -> Answer:
        """Ask for a page as a browser would, and follow where it leads."""
        answer = self.ask("GET", f"{self.home}/{page}", Cookie=self.cookie)
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def post(self, page: str, *fields: tuple[str, str], **more: str) -> Answer:
        """Send a form, and follow where it leads."""
        answer = self.send(page, *fields, **more)
        return self.get(answer.headers["location"]) if answer.status == 303 else answer

    def send(self, page: str, *fields: tuple[str, str], **more: str) -> Answer:
        """Send a form."""
        body = urlencode([*fields, *more.items()])
        return self.ask(
            "POST", f"{self.home}/{page}", body, Cookie=self.cookie, Origin=f"http://{self.host}"
        )

    def wait(self, page: str, done: str, seconds: float = 90) -> Answer:
        """Ask for a page until it holds some text."""
        end = time.monotonic() + seconds
        while True:
            answer = self.get(page)
            if done in answer.text:
                return answer
            assert time.monotonic() < end, answer.text
            time.sleep(0.1)

    # --- the way --------------------------------------------------------------------------------

    def declare(self, **more: str) -> Answer:
        """Fill in the columns of `write_table`."""
        places = [("place", str(k)) for k in range(len(NAMES))]
        return self.post("table", *places, *(DECLARED | more).items(), ("action", "next"))

    def question(self, **more: str) -> Answer:
        """Ask for the cost by all others."""
        features = [("feature", str(k)) for k in range(4)]
        asked = {"target": "3", "model": "private-lasso", "rows": ""} | more
        return self.post("question", *features, *asked.items())

    def grant(self, epsilon: str = "3") -> Answer:
        return self.post("budget", action="grant", dataset="survey", epsilon=epsilon, delta="1e-6")

    def up_to_release(self, epsilon: str = "1") -> Answer:
        """Take the first four steps, and return the page of the fifth."""
        self.enter()
        assert self.declare().step == "question"
        assert self.question().step == "budget"
        self.grant()
        spent = self.send("budget", action="spend", epsilon=epsilon, delta="1e-6")
        assert spent.headers["location"] == "dry-run"
        return self.get("release")

    def everything(self) -> str:
        """Return all that was ever said, on every way out."""
        return "\n".join([*self.heard, self.errors.read_text()])


def ticket_of(answer: Answer) -> str:
    """Return the ticket of a release page."""
    return re.findall(r'name="ticket" value="([^"]*)"', answer.text)[0]


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def words(answer: Answer) -> str:
    """Return what can be read on a page."""
    parser = _Words()
    parser.feed(answer.text)
    return " ".join(" ".join(parser.words).split())


@contextlib.contextmanager
def studio(table: Path, *options: object) -> Iterator[Studio]:
    """Start the studio of a table, and end it afterwards."""
    errors = table.with_name(f"{table.name}.stderr")
    with errors.open("a") as stream:
        process = subprocess.Popen(
            command_line("studio", table, "--no-browser", *options),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stream, text=True,
        )  # fmt: skip
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), errors.read_text()
        yield Studio(process, address, errors, table.with_name(f"{table.stem}-studio"))
    finally:
        process.terminate()
        process.communicate(timeout=30)


# --- the steps in this process --------------------------------------------------------------------


def session_of(table: Path, folder: Path, ledger: Path | None = None) -> Session:
    """Open a session of a table."""
    shelf = Shelf(folder, ledger)
    shelf.open()
    return Session(table, shelf)


def declare_columns(draft: Draft) -> None:
    """Fill in the columns of `write_table`."""
    for place in range(len(NAMES)):
        typed = (DECLARED.get(f"{name}-{place}", "") for name in ("low", "high", "levels"))
        draft.put(place, DECLARED[f"kind-{place}"], *typed)


def posted(*fields: tuple[str, str], **more: str) -> StepRequest:
    """Return a form; a name may stand in it several times, and is written with _ for -."""
    form: dict[str, list[str]] = {}
    for name, value in (*fields, *more.items()):
        form.setdefault(name.replace("_", "-"), []).append(value)
    return StepRequest({}, form, posted=bool(form))


def page_of(session: Session, answer: object) -> str:
    """Return the page that an answer becomes."""
    return _rendered(session, answer).body.decode()
