"""`dpscreen schema ask`: a conversation in a pipe, kept as it goes, that sees names and no cell."""

from __future__ import annotations

import io
import os
import subprocess

import pytest
from click.testing import CliRunner

from dpscreen.cli.app import dpscreen as app
from dpscreen.tables import csv
from dpscreen.tables.schema import load_schema
from tools.command import command_line, failed, succeeded

HEADER = b"patient_id,age,sex,income,lunch_pct,cost\n"
ANSWERS = ("cost", "", "3", "", "f, m", "0 to 1e6", "", "0 to 5000")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_bytes(HEADER + b'Zebedee,"77\xff,never closed\n77,77\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*arguments, answers=()):
    lines = "".join(f"{one}\n" for one in answers)
    return CliRunner().invoke(app, ["schema", "ask", *arguments], input=lines)


def test_a_conversation_as_a_process_makes_a_schema_and_tells_no_cell(folder):
    done = subprocess.run(
        command_line("schema", "ask", "data.csv"),
        input="".join(f"{one}\n" for one in ANSWERS),
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    schema = load_schema("schema.toml")
    assert schema.problems() == []
    assert (schema.target, schema.unit, schema.rows_per_unit) == ("cost", "patient_id", 3)
    assert schema.columns == ("age", "sex", "income", "lunch_pct")
    assert "not from the rows" in done.stdout
    assert "Next: dpscreen fit data.csv --schema schema.toml" in done.stdout
    written = done.stdout + (folder / "schema.toml").read_text(encoding="utf-8")
    assert "Zebedee" not in written
    assert "77" not in written


class OnlyTheHeader(io.BytesIO):
    """A file that cannot be read after its first line."""

    def peek(self, size=0):
        assert self.tell() < len(HEADER), "a row was read"
        return HEADER[self.tell() :]

    def read(self, size=-1):
        assert 0 <= size <= len(HEADER) - self.tell(), "a cell was read"
        return super().read(size)

    def readline(self, size=-1):
        raise AssertionError("a row may be read")


def test_nothing_after_the_first_line_is_read(folder, monkeypatch):
    monkeypatch.setattr(csv, "open_text", lambda *_: OnlyTheHeader(HEADER + b"Zebedee\n"))
    for arguments in (["--quick"], ["--again"], []):
        succeeded(ask("data.csv", *arguments, answers=ANSWERS))
    made = CliRunner().invoke(app, ["schema", "new", "data.csv", "-o", "new.toml"])
    assert made.exit_code == 0, made.output


@pytest.mark.parametrize("answered", range(len(ANSWERS)))
def test_it_is_taken_up_again_after_any_answer(folder, answered):
    ask("data.csv", "-o", "whole.toml", answers=ANSWERS)
    first = ask("data.csv", answers=ANSWERS[:answered])
    succeeded(first, "Continue with: dpscreen schema ask data.csv -o schema.toml")
    ask("data.csv", answers=ANSWERS[answered:])
    assert (folder / "schema.toml").read_text() == (folder / "whole.toml").read_text()


def test_quick_asks_only_where_a_name_leaves_a_doubt(folder):
    (folder / "data.csv").write_text("rownames,age,lunch_pct,is_member,cost\n")
    succeeded(ask("data.csv", "--target", "cost", "--quick", answers=["none", "0 to 9"]))
    assert load_schema("schema.toml").columns == ("age", "lunch_pct", "is_member")


def test_mistakes_are_told_and_nothing_is_lost(folder):
    done = ask("data.csv", answers=["Cots", "cost", "none", "", "?", "who knows", "quit"])
    assert "There is no column 'Cots'. Did you mean 'cost'?" in done.output
    assert "That answer is not understood" in done.output
    assert "the words or codes that can occur" in done.output
    assert load_schema("schema.toml").target == "cost"
    kept = (folder / "schema.toml").read_bytes()
    (folder / "other.csv").write_text("a,b\n")
    failed(ask("other.csv"), 1, "table with other columns")
    assert (folder / "schema.toml").read_bytes() == kept
    assert ask("data.csv", "-o", "schema.json").exit_code == 2
    assert "Did you mean 'age'?" in ask("data.csv", "-o", "x.toml", "--target", "Age").output
