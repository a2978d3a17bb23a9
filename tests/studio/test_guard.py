"""Who is let in, said in raw HTTP: wrong tokens, foreign origins, names that lead here."""

import re
import socket

import pytest

from dpscreen.cli.studio import _session as open_session
from tools.command import failed, invoke
from tools.studio import SECRET, studio, words, write_table


@pytest.fixture(scope="module")
def open_studio(tmp_path_factory):
    place = tmp_path_factory.mktemp("guarded")
    with studio(write_table(place / "survey.csv", 20)) as running:
        for wrong in ("", "token=", "token=abc", "token=%FF%00", f"token={'x' * 43}"):
            assert running.ask("GET", f"/enter?{wrong}").status == 403
        entry = running.address.partition(running.host)[2]
        assert running.ask("GET", entry, Origin="http://evil.example").status == 403
        running.enter()
        yield running


def test_the_address_works_once(open_studio):
    path = open_studio.address.partition(open_studio.host)[2]
    assert open_studio.ask("GET", path).status == 403
    assert open_studio.get("table").step == "table"


def test_without_place_or_cookie_nothing_is_shown(open_studio):
    home, cookie = open_studio.home, open_studio.cookie
    name, _, value = cookie.partition("=")
    assert open_studio.ask("GET", f"{home}/table").status == 403
    for wrong in (f"{name}=", f"{name}={value[:-1]}", f"other={value}", "§;=", f"{name}={value}x"):
        assert open_studio.ask("GET", f"{home}/table", Cookie=wrong).status == 403
    for path in ("/", "/table", "/enter", f"{home[:-1]}/table", f"//{home}/table"):
        assert open_studio.ask("GET", path, Cookie=cookie).status == 403
    for page in ("studio.js", "style.css", "alive", "download?file=model.json"):
        assert open_studio.ask("GET", f"{home}/{page}").status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""]
)
def test_a_name_that_was_made_to_lead_here_is_refused(open_studio, host):
    host = host.format(port=open_studio.host.split(":")[1])
    path = f"{open_studio.home}/table"
    answer = open_studio.ask("GET", path, Cookie=open_studio.cookie, Host=host)
    assert answer.status in (400, 421)
    assert "survey" not in answer.text


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {}),
        ("POST", {"Origin": "null"}),
        ("POST", {"Origin": "http://evil.example"}),
        ("POST", {"Origin": "http://127.0.0.1:1"}),
        ("POST", {"Origin": "http://localhost:{port}"}),
        ("POST", {"Origin": "https://127.0.0.1:{port}"}),
        ("POST", {"Origin": "http://127.0.0.1:{port}", "Sec_Fetch_Site": "cross-site"}),
        ("GET", {"Origin": "http://evil.example"}),
        ("GET", {"Sec_Fetch_Site": "cross-site"}),
        ("GET", {"Sec_Fetch_Site": "same-site"}),
        ("PUT", {}),
    ],
)
def test_what_other_pages_send_is_refused(open_studio, method, headers):
    port = open_studio.host.split(":")[1]
    given = {name: value.format(port=port) for name, value in headers.items()}
    before = open_studio.get("table").text
    path = f"{open_studio.home}/table"
    answer = open_studio.ask(
        method, path, "action=all&all-kind=boolean" if method == "POST" else None,
        Cookie=open_studio.cookie, **given,
    )  # fmt: skip
    assert answer.status == 403
    assert "survey" not in answer.text
    assert open_studio.get("table").text == before


def test_the_cookie_is_for_these_pages_of_this_run_only(open_studio, tmp_path):
    with studio(write_table(tmp_path / "other.csv", 20)) as other:
        path = other.address.partition(other.host)[2]
        answer = other.ask("GET", path, Sec_Fetch_Site="cross-site")  # a link in a web terminal
        found = answer.headers["set-cookie"]
        home = re.findall(r"url=(/[^/]+)/", answer.text)[0]
        assert "HttpOnly" in found
        assert "SameSite=strict" in found
        assert f"Path={home}/" in found
        assert home != open_studio.home
        assert other.ask("GET", f"{home}/table", Cookie=open_studio.cookie).status == 403


def test_every_answer_has_a_strict_policy(open_studio):
    pages = ("table", "studio.js", "style.css", "alive", "nowhere", "download?file=x")
    answers = [open_studio.get(page) for page in pages]
    answers.append(open_studio.ask("GET", "/"))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
        assert "<style" not in answer.text
        assert "style=" not in answer.text
        assert not re.search(r"<script(?! src=)|\son[a-z]+=", answer.text)


def test_it_listens_on_the_loopback_address_only(open_studio):
    port = int(open_studio.host.split(":")[1])
    others = {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with socket.socket() as found:
                found.settimeout(2)
                assert found.connect_ex((address, port)) != 0


@pytest.mark.parametrize(
    ("page", "body"),
    [
        ("table", "place=99999999&place=-1&place=x&kind-0=%00&action=next"),
        ("table", "page=99999999999&find=" + "x" * 5000),
        ("table", "&" * 100),
        ("table", "x=1&" * 60_000),
        ("table", "x" * 5_000_000),
        ("question", "target=99&unit=99&feature=99&rows=" + "9" * 400),
        ("budget", "action=grant&epsilon=nan&delta=inf"),
        ("release", "ticket=x&dataset=survey"),
        ("cancel", ""),
    ],
)
def test_broken_forms_break_nothing_and_tell_nothing(open_studio, page, body):
    given = {"Cookie": open_studio.cookie, "Origin": f"http://{open_studio.host}"}
    answer = open_studio.ask("POST", f"{open_studio.home}/{page}", body, **given)
    assert answer.status in (200, 303, 413, 422)
    assert "Traceback" not in answer.text
    assert open_studio.get("table").step == "table"


def test_nothing_tells_a_cell_a_path_or_a_trace(open_studio):
    for page in ("nowhere", "table/..", "%2e%2e/table", "result/page", "download?file=../x"):
        answer = open_studio.get(page)
        assert answer.status == 404
        assert "There is no such" in answer.text or "not made yet" in answer.text
    said = open_studio.everything()
    assert SECRET not in said
    assert str(open_studio.folder.parent) not in said
    assert "Traceback" not in said
    assert "site-packages" not in said
    assert "Use the address" in words(open_studio.ask("GET", "/"))


def test_a_port_that_is_taken_and_an_open_folder_are_told(open_studio, tmp_path):
    port = open_studio.host.split(":")[1]
    table = write_table(tmp_path / "another.csv", 5)
    taken = invoke("studio", table, "--no-browser", "--port", port)
    assert (taken.exit_code, taken.output.strip()[:11]) == (1, "Error: Port")
    again = invoke("studio", open_studio.folder.with_name("survey.csv"), "--no-browser")
    failed(again, 1, "Another studio")
    missing = invoke("studio", tmp_path / "nothing.csv", "--no-browser")
    assert missing.exit_code == 1
    assert not (tmp_path / "nothing-studio").exists()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"a,a,b\n1,2,3\n", "names occur twice"),
        (b"a,,b\n1,2,3\n", "column 2 without a name"),
        (b"\xe4ge,b\n1,2\n", "--encoding cp1252"),
        (b"1,2,3\n4,5,6\n", "may be a row, not a header"),
        (b"a b\n1 2\n", "has one column"),
        (b"", "no column names"),
    ],
)
def test_what_is_no_table_is_told_and_leaves_nothing(tmp_path, written, message):
    (tmp_path / "t.csv").write_bytes(written)
    refused = invoke("studio", tmp_path / "t.csv", "--no-browser")
    failed(refused, 1, message)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_another_table_of_the_same_name_is_not_taken_for_the_declared_one(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    open_session(tmp_path / "t.csv", None, None).close()
    (tmp_path / "t-studio/schema.json").write_text('{"fields": [{"name": "c", "type": "number"}]}')
    refused = invoke("studio", tmp_path / "t.csv", "--no-browser")
    failed(refused, 1, "does not fit the schema", "--folder")
