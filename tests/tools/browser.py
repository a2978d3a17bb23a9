"""A real browser, driven through a pipe: no network, no extra package.

Chromium reads DevTools commands from file descriptor 3 and answers on 4, each message ended by a
zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)
# The pipe's ends may be numbered 3 or 4 themselves, so move them out of the way first.
MOVE_AND_START = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 20) for end in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    " ": (32, " "),
    "ArrowDown": (40, ""),
    "ArrowRight": (39, ""),
    "Backspace": (8, ""),
}
"""Their codes, and what they write."""


def find_browser() -> str:
    """Return Chromium's path; without it, skip, or fail where CI promises to have it."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    reason = "there is no Chromium here (Debian: apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class PageChanged(Exception):
    """The page that was asked is gone, and another one on its way."""


class Browser:
    """One tab."""

    def __init__(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        self._commands, self._answers = commands, answers
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise PageChanged
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, page: Path | str) -> None:
        """Load a page, a file or an address, and wait until it is there."""
        self.events.clear()
        self.send("Page.navigate", url=page if isinstance(page, str) else page.absolute().as_uri())
        self.loaded()

    def loaded(self) -> None:
        """Wait until the page that is on its way is there."""
        while not self.seen("Page.loadEventFired"):
            self._receive()

    def messages(self) -> list[dict[str, Any]]:
        """Return what the page logged or threw."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for kind in kinds for event in self.seen(kind)]

    def asked_for(self) -> list[str]:
        """Return the addresses that were asked for, the page's own first."""
        urls = [event["request"]["url"] for event in self.seen("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith("data:")]

    def until(self, expression: str, seconds: float = 60) -> None:
        """Wait until an expression is true, through any change of page."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(PageChanged):
                answer = self.send("Runtime.evaluate", expression=f"!!({expression})")
                if answer["result"].get("value") is True:
                    return
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Click with the mouse into the middle of an element."""
        found = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect();"
            " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        place = {"x": found[0], "y": found[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **place)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key by its name."""
        code, text = KEYS[key]
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
        more = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **told, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, text: str) -> None:
        """Type text into what has the focus."""
        self.send("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Take a picture of what can be seen."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme: str) -> None:
        wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.send("Emulation.setEmulatedMedia", features=features)  # what moves is clicked beside

    def seen(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of these events since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _receive(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has gone away"
            message += byte
        answer: dict[str, Any] = json.loads(message)
        if "method" in answer:
            self.events.append(answer)
        return answer


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium with a profile of its own and end it afterwards."""
    path = find_browser()
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        start = [sys.executable, "-c", MOVE_AND_START, str(command_read), str(answer_write)]
        process = subprocess.Popen(
            [*start, path, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(command_read, answer_write),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        try:
            with (
                os.fdopen(command_write, "wb", 0) as commands,
                os.fdopen(answer_read, "rb") as told,
            ):
                yield Browser(commands, told)
        finally:
            process.terminate()
            process.wait(timeout=20)


# What the usual checkers call serious, as far as a page without scripts can have it.
SERIOUS = """
(() => {
  const found = [], all = s => [...document.querySelectorAll(s)];
  const ids = all('[id]').map(e => e.id);
  found.push(...ids.filter((id, i) => ids.indexOf(id) !== i).map(id => 'two of ' + id));
  all('[aria-labelledby]').forEach(e => e.getAttribute('aria-labelledby').split(' ').forEach(
    id => document.getElementById(id)?.textContent.trim() || found.push('no label ' + id)));
  all('[role=img]').forEach(e => e.getAttribute('aria-label') || found.push('image: no words'));
  all('a[href^="#"]').forEach(e => document.getElementById(e.hash.slice(1))
    || found.push('no ' + e.hash));
  all('a').forEach(e => e.textContent.trim() || found.push('link without words'));
  all('table').forEach(e => e.caption && e.tHead || found.push('table without headings'));
  all('th').forEach(e => e.scope || found.push('heading without scope'));
  all('dl > div').forEach(e => [...e.children].every(c => ['DT', 'DD'].includes(c.tagName))
    || found.push('list'));
  const levels = all('h1, h2, h3, h4').map(e => +e.tagName[1]);
  levels.forEach((l, i) => i && l > levels[i - 1] + 1 && found.push('headings skip'));
  if (levels.filter(l => l === 1).length !== 1) found.push('one h1');
  all('.scroll').forEach(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0 &&
    found.push('cannot be scrolled by keyboard'));
  if (!document.documentElement.lang || !document.title) found.push('language, title');
  if (!document.querySelector('main')) found.push('main');
  return found;
})()
"""


def check_page(tab: Browser) -> None:
    """Fail on a serious fault, a message, a request but for the page, or what a phone cuts off."""
    assert tab.evaluate(SERIOUS) == []
    assert tab.messages() == []
    assert [url[:5] for url in tab.asked_for()] == ["file:"]
    for width in (360, 1280):
        tab.resize(width)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
