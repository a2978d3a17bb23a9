"""The studio in a real browser: by mouse and by keyboard, small and large, light and dark."""

import contextlib
import http.server
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tools.browser import browser
from tools.studio import SECRET, studio, write_table

NOISE = "status of 422"  # the browser says so of every form that is sent back


def at(tab, step):
    tab.until(f"document.body?.dataset.step == '{step}' && document.readyState == 'complete'")


def fits(tab, width):
    """Nothing is wider than the window, and nothing was refused by the policy or thrown."""
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    quiet = [*tab.seen("Runtime.exceptionThrown"), *tab.seen("Runtime.consoleAPICalled")]
    assert quiet == []
    assert [one for one in tab.seen("Log.entryAdded") if NOISE not in str(one)] == []


def fill(tab, **values):
    """Set fields as a person does who is done with them."""
    for name, value in values.items():
        selector = f"form[method=post] [name='{name.replace('_', '-')}']"
        tab.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.value = {value!r};"
            " for (const one of ['change', 'input'])"
            " e.dispatchEvent(new Event(one, {bubbles: true})); })()"
        )


def declare(tab):
    fill(tab, kind_0="skip", kind_1="number", low_1="0", high_1="120", kind_2="category")
    fill(tab, levels_2="f, m", kind_3="number", low_3="0", high_3="10")
    fill(tab, kind_4="number", low_4="0", high_4="20000")
    tab.click("#next")
    at(tab, "question")


def release(tab, dataset):
    """Type the name of the data set, and wait for the result."""
    tab.click("#dataset")
    tab.type(dataset)
    tab.click("#next")
    tab.until("document.body?.dataset.step == 'result'", 120)


@contextlib.contextmanager
def entered(table, width=1280, scheme="light", *, bypass=False):
    """Yield a studio, and a browser that has come in."""
    with studio(table) as running, browser() as tab:
        tab.resize(width)
        tab.prefer(scheme)
        if bypass:
            tab.send("Page.setBypassCSP", enabled=True)  # axe is a script of somebody else
        tab.open(running.address)
        at(tab, "table")
        yield running, tab


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with entered(write_table(tmp_path_factory.mktemp("browser") / "survey.csv")) as both:
        yield both


def shows_the_page_itself(tab):
    """The model's page is as high as what it shows, opened or not, and before the downloads."""
    page = "document.querySelector('iframe.model')?.contentDocument?.documentElement"
    whole = f"{page}?.offsetHeight > 300 && {page}.scrollHeight <= {page}.clientHeight + 4"
    tab.until(f"{page}?.querySelector('#reading')", 120)
    tab.until(whole)
    before = tab.evaluate(f"{page}.offsetHeight")
    tab.evaluate(f"{page}.querySelector('#guarantee').setAttribute('open', '')")
    tab.until(f"{page}.offsetHeight > {before} + 200 && {whole}")
    assert tab.evaluate(
        "document.querySelector('iframe.model').compareDocumentPosition("
        "document.querySelector('#files')) & Node.DOCUMENT_POSITION_FOLLOWING"
    )


def test_the_whole_way_by_mouse(opened):
    running, tab = opened
    assert "/enter" not in tab.evaluate("location.href")
    assert tab.evaluate("document.cookie") == ""  # no script can read it
    fits(tab, 1280)
    declare(tab)
    chosen = "document.querySelector('[name=model]:checked').value"
    rate = "document.querySelector('#rate').checkVisibility()"
    assert not tab.evaluate(rate)
    for target, model in (("1", "private-logistic"), ("3", "private-lasso")):  # sex, then cost
        fill(tab, target=target, rows="600")
        assert (tab.evaluate(chosen), tab.evaluate(rate)) == (model, target == "1")
    tab.click("#model-private-logit")
    fill(tab, target="1")  # a binary outcome, so the model stays
    assert (tab.evaluate(chosen), tab.evaluate(rate)) == ("private-logit", True)
    fill(tab, target="3")
    assert tab.evaluate(chosen) == "private-lasso"
    fits(tab, 1280)
    tab.click("#next")
    at(tab, "budget")
    tab.click("#next")
    tab.until("document.querySelector('#slider')")
    tab.until("document.querySelectorAll('.panels svg').length == 2", 120)
    before = tab.evaluate("document.querySelector('.mark-now').getAttribute('cx')")
    fill(tab, epsilon="0.4")
    moved = f"document.querySelector('.mark-now').getAttribute('cx') != {before!r}"
    tab.until(moved)
    assert "59.9 %" in tab.evaluate("document.querySelector('#live').innerText")
    fits(tab, 1280)
    tab.click("#next")
    at(tab, "dry-run")
    tab.click("#next")
    at(tab, "release")
    release(tab, "survey")
    assert tab.evaluate("document.querySelectorAll('.files li').length") >= 3
    assert SECRET not in tab.evaluate("document.documentElement.outerHTML")
    fits(tab, 1280)
    own = (f"http://{running.host}/", "about:")
    assert [url for url in tab.asked_for() if not url.startswith(own)] == []


FRAME_IS_THERE = "performance.getEntriesByType('resource').some(e => e.initiatorType == 'iframe')"


def tab_to(tab, selector, most=60):
    """Press Tab until an element has the focus, which can be seen."""
    for _ in range(most):
        tab.press("Tab")
        if tab.evaluate(f"document.activeElement.matches({selector!r})"):
            assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
        time.sleep(0.02)  # a frame takes the focus, and gives it back, in a process of its own
    raise AssertionError(f"Tab does not lead to {selector}")


def enter(tab):
    """Go on by keyboard."""
    tab_to(tab, "#next")
    tab.press("Enter")


def type_in(tab, selector, text):
    tab_to(tab, selector)
    tab.evaluate("document.activeElement.select()")
    tab.type(text)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_whole_way_by_keyboard_alone(tmp_path, width, scheme):
    with entered(write_table(tmp_path / "phone.csv"), width, scheme) as (_, tab):
        fits(tab, width)
        tab.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        typed = {"levels-2": "f, m", "low-3": "0", "high-3": "10", "low-4": "0", "high-4": "20000"}
        for name, text in typed.items():
            type_in(tab, f"[name={name}]", text)
        enter(tab)
        at(tab, "question")
        fits(tab, width)
        tab_to(tab, "#target")
        for _ in range(4):
            tab.press("ArrowDown")
        assert tab.evaluate("document.activeElement.selectedOptions[0].text") == "cost"
        tab_to(tab, "#intervals-private-lasso")
        tab.press(" ")
        type_in(tab, "#rows", "600")
        enter(tab)
        at(tab, "budget")
        type_in(tab, "#dataset", "my data")
        enter(tab)
        tab.until("document.querySelector('#slider')")
        tab_to(tab, "#slider")
        before = tab.evaluate("document.querySelector('#epsilon').value")
        for _ in range(60):
            tab.press("ArrowRight")
        assert tab.evaluate("document.querySelector('#epsilon').value") > before
        tab.until("document.querySelectorAll('.panels figure').length == 3", 170)
        fits(tab, width)
        enter(tab)
        at(tab, "dry-run")
        badge = "document.querySelector('iframe')?.contentDocument?.querySelector('.stamp')"
        tab.until(f"{badge}?.innerText.startsWith('Simulated rows')", 170)
        fits(tab, width)
        enter(tab)
        at(tab, "release")
        type_in(tab, "#dataset", "my data")
        tab.press("Enter")
        tab.until("document.body?.dataset.step == 'result'", 170)
        shows_the_page_itself(tab)
        fits(tab, width)
        paper, ink = (
            brightness(tab, f"getComputedStyle(document.body).{name}")
            for name in ("backgroundColor", "color")
        )
        assert (paper < 60, ink > 180) == ((True, True) if scheme == "dark" else (False, False))


def brightness(tab, expression):
    numbers = tab.evaluate(expression).removeprefix("rgb(").removesuffix(")").split(",")
    return sum(map(int, numbers)) / 3


def press(tab, value, **chosen):
    """Choose by the words of the options, and add or remove a term."""
    for name, text in chosen.items():
        selector = f"[name='{name.replace('_', '-')}']"
        tab.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.value ="
            f" [...(e.options ?? [])].find(o => o.text == {text!r})?.value ?? {text!r}; }})()"
        )
    before = tab.evaluate("performance.timeOrigin")
    tab.click(f"button[{value}]")
    tab.until(f"performance.timeOrigin != {before} && document.readyState == 'complete'")


def test_terms_are_added_and_removed_by_clicking(tmp_path):
    with entered(write_table(tmp_path / "survey.csv"), 360) as (running, tab):
        declare(tab)
        formula = "document.querySelector('#formula').textContent"
        fill(tab, target="3")  # the formula follows what is chosen, without a button
        tab.until(f"{formula} == 'cost ~ age + sex + score'")
        for button, count in (("", 0), ("yes", 4)):
            tab.click(f"[data-all='{button}']")
            chosen = "document.querySelectorAll('[name=feature]:checked').length"
            assert tab.evaluate(chosen) == count
        tab.click("#terms summary")
        press(tab, "value=square", column="age")
        assert tab.evaluate(formula) == "cost ~ age + sex + score + I(age ** 2)"
        press(tab, "value=logarithm", column="score")
        refusal = "document.querySelector('#refusal')"
        assert "log needs values above 0" in tab.evaluate(f"{refusal}.innerText")
        assert tab.evaluate(f"{refusal}.checkVisibility()")
        fits(tab, 360)
        press(tab, "value=spline", column="score", knots="5, 50")
        assert "between 0 and 10" in tab.evaluate(f"{refusal}.innerText")
        assert tab.evaluate("document.querySelector('#knots').value") == "5, 50"
        press(tab, "value=spline", knots="6 3")
        press(tab, "value=interaction", first_column="age", second_column="sex")
        chips = "[...document.querySelectorAll('.chips code')].map(e => e.innerText)"
        terms = ["I(age ** 2)", "bs(score, knots=[3, 6])", "age:sex"]
        assert tab.evaluate(chips) == terms
        press(tab, "name=remove")  # the first
        assert tab.evaluate(chips) == terms[1:]
        saved = json.loads(declared(running))["dpscreen"]
        assert saved["formula"] == "cost ~ age + sex + bs(score, knots=[3, 6]) + age:sex"
        assert "features" not in saved
        interest = "document.querySelector('[name=interest]').checkVisibility()"
        assert not tab.evaluate(interest)
        tab.click("#model-private-ols")
        assert tab.evaluate(interest)
        tab.click("[name=interest][value='term-1']")
        fill(tab, rows="600")
        fits(tab, 360)
        tab.click("#next")
        at(tab, "budget")


# --- pages of others ------------------------------------------------------------------------------

FOREIGN = """<!DOCTYPE html><iframe src="{home}/table"></iframe>
<form method="post" action="{home}/table"><input name="action" value="all">
<input name="all-kind" value="boolean"></form><script>
const ways = [["no-cors", "GET"], ["no-cors", "POST"], ["cors", "GET"]];
Promise.all(ways.map(([mode, method]) => fetch("{home}/table", {{mode, method,
  credentials: "include"}}).then((one) => one.text(), () => "")))
  .then((told) => {{ document.title = "told: " + told.join(""); }});
</script>"""


@contextlib.contextmanager
def foreign_server(page):
    """Serve a page that knows where the studio is: on another port of this machine."""

    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_told):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def declared(running):
    """Return what is saved of the columns; nothing at first."""
    path = running.folder / "schema.json"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1"])  # the second is sent the cookie
def test_pages_of_others_are_told_nothing_and_change_nothing(opened, host):
    running, tab = opened
    home = tab.evaluate("location.href").rpartition("/")[0]
    before = declared(running)
    with foreign_server(FOREIGN.format(home=home)) as port:
        tab.open(f"http://{host}:{port}/")
        tab.until("document.title.startsWith('told:')")
        assert tab.evaluate("document.title") == "told:"
        tab.evaluate("document.forms[0].submit()")
        tab.until("document.body?.innerText.includes('did not come from')")
    answers = [one["response"] for one in tab.seen("Network.responseReceived")]
    asked = [one["status"] for one in answers if one["url"] == f"{home}/table"]
    assert set(asked) == {403}  # of all that such a page asks for; our own may still be breathing
    assert declared(running) == before
    tab.open(f"{home}/table")
    at(tab, "table")


def test_a_lost_connection_a_killed_server_and_a_second_tab(opened):
    running, tab = opened
    tab.resize(360)
    home = f"{tab.evaluate('location.href').rpartition('/')[0]}/table"
    tab.open(home)
    at(tab, "table")
    assert tab.send("Target.createTarget", url=home)["targetId"]
    tab.send("Network.emulateNetworkConditions", offline=True, latency=0,
             downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
    tab.until("!document.querySelector('#lost').hidden")
    assert tab.evaluate("document.querySelector('#next').disabled")
    tab.send("Network.emulateNetworkConditions", offline=False, latency=0,
             downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
    tab.until("document.querySelector('#lost').hidden")
    declare(tab)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait(10)
    tab.until("!document.querySelector('#lost').hidden")
    assert tab.evaluate("document.querySelector('#lost').checkVisibility()")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert tab.seen("Runtime.exceptionThrown") == []
    with studio(running.folder.with_name("survey.csv")) as again:
        tab.open(again.address)
        at(tab, "table")
        assert tab.evaluate("document.querySelector('[name=high-4]').value") == "20000"


# --- accessibility --------------------------------------------------------------------------------

AXE = Path(os.environ.get("DPSCREEN_AXE", "node_modules/axe-core/axe.min.js"))
"""Where axe-core lies: `npm install --no-save axe-core` puts it there; it is not part of this."""


@pytest.mark.slow
@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: npm install --no-save axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_serious_on_any_step(tmp_path, scheme, width):
    with entered(write_table(tmp_path / "survey.csv"), width, scheme, bypass=True) as (_, tab):
        serious(tab)
        tab.click("#next")
        tab.until("document.querySelector('#problems')")
        serious(tab)
        declare(tab)
        fill(tab, target="3", rows="600")
        for model in ("private-logistic", "private-logit", "private-ols", "private-lasso"):
            tab.click(f"#model-{model}")
            serious(tab)
        tab.evaluate("document.querySelector('#column').selectedIndex = 1")
        for kind, shown in (("square", ".chips"), ("logarithm", "#refusal")):
            tab.evaluate(f"document.querySelector('button[value={kind}]').click()")
            tab.until(f"document.querySelector('{shown}') && document.readyState == 'complete'")
            tab.evaluate("document.querySelector('#column').selectedIndex = 1")
            serious(tab)
        tab.click("#intervals-private-lasso")
        serious(tab)
        for reached in (
            "document.body?.dataset.step == 'budget'",
            "document.querySelectorAll('.panels svg').length >= 2",
            "document.querySelector('iframe')",
            "document.body?.dataset.step == 'release'",
        ):
            tab.click("#next")
            tab.until(reached, 170)
            serious(tab)
        release(tab, "survey")
        serious(tab)
        tab.evaluate("document.querySelector('main').append(document.createElement('input'))")
        with pytest.raises(AssertionError, match="label"):
            serious(tab)  # it would have been seen


def serious(tab):
    tab.until("document.readyState == 'complete'")  # without its styles a page has other colours
    tab.send("Runtime.evaluate", expression=AXE.read_text())
    answer = tab.send(
        "Runtime.evaluate",
        expression="axe.run(document, {iframes: false}).then(r => r.violations.map(v =>"
        " [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 120)).slice(0, 3)]))",
        awaitPromise=True,
        returnByValue=True,
    )
    found = answer["result"]["value"]
    assert [one for one in found if one[0] in ("serious", "critical")] == []
