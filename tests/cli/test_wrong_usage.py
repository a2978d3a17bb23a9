"""Wrong usage of every command: a sentence, exit code 2, and no file."""

import pytest

from tools.command import failed, here

COMPARE = "compare --rows 500 --features 8 --repetitions 2"
PLAN = "plan --features 10"
CREATE = "ledger create x.db --dataset survey"
FIT = "fit data.csv --schema schema.toml -o model.json"
MANY = " ".join(f"--epsilon {one}" for one in range(1, 17))
CASES = {
    "compare --rows 500": "Give --features or --schema",
    "compare --rows 500 --features 5 --schema s.json": "one of them",
    f"{COMPARE} --epsilon 0": "--epsilon",
    f"{COMPARE} --method ridge": "--method",
    f"{COMPARE} --method lasso --rate 0.5": "not for this kind of outcome",
    f"{COMPARE} --method class-means": "not for this kind of outcome",
    f"{COMPARE} --n-effects 9": "n_effects must be at most 8",
    f"{COMPARE} --effect 0.9 --n-effects 2": "would explain more than",
    f"{COMPARE} --plot a.docx": "must end in .png",
    f"{COMPARE} --plot nowhere/a.png": "there is no directory nowhere",
    f"{COMPARE} --epsilon 1e-300 --delta 1e-300": "too small",
    f"{COMPARE} {MANY}": "at most 15",
    f"{FIT} --epsilon x --delta 1e-6": "'--epsilon': 'x' is not a valid number.",
    f"{FIT} --epsilon 0 --delta 1e-6": "0.0 is not in the range x>0.",
    f"{FIT} --epsilon nan --delta 1e-6": "nan is not a number.",
    f"{FIT} --epsilon 1e308 --delta 1e-6": "epsilon must be at most 10000",
    f"{FIT} --epsilon 1 --delta 1": "1.0 is not in the range 0<x<1.",
    f"{FIT} --epsilon 1 --delta nan": "nan is not a number.",
    f"{FIT} --rows-public 4.5": "'4.5' is not a valid integer",
    "contest": "Give a folder",
    "contest folder": "public tables only",
    "contest --simulated --method private-laso": "did you mean 'private-lasso'",
    "contest --simulated --trials 0": "--trials",
    "demo --data real": "--data",
    "plan": "--features",
    PLAN: "Give --rows, --epsilon, or both",
    f"{PLAN} --rows 100": "--epsilon, or --effect",
    f"{PLAN} --epsilon 1": "--rows, or --effect",
    f"{PLAN} --epsilon 0 --rows 100": "--epsilon",
    f"{PLAN} --epsilon 1 --rows 100 --plot a.gif": ".png",
    f"{PLAN} --epsilon 1 --rows 100 --plot no/a.png": "directory",
    f"{PLAN} --epsilon 1 --effect 0.1 --plot a.png": "both",
    "plan --features 40 --epsilon 1 --rows 100 --effect 0.9": "variance",
    "plan --rows 500 --epsilon 1": "Give --features or --schema: one of them.",
    "plan --rows 500 --epsilon 1 --features 3 --schema s.toml": "one of them.",
    f"{PLAN} --epsilon 1 --model ols": "--model ols needs --rows and --epsilon",
    f"{PLAN} --epsilon 1 --model logistic --effect 0.9": "logistic needs --rows and --epsilon",
    f"{PLAN} --epsilon 3 --rows 900 --model logistic --rate 2": "--rate",
    f"{PLAN} --epsilon 3 --rows 900 --rate 0.5": "does not apply to private-lasso",
    "ledger create x.db": "Missing option",
    f"{CREATE} --epsilon nan --delta 1e-6": "nan is not a number",
    "ledger create x.db --dataset a\x1b[2J --epsilon 2 --delta 1e-6": "printable",
    f"{CREATE} --epsilon 2 --delta 1e-6 --declare a=1 --declare a=2": "each name once",
    "ledger shred x.db": "No such command",
    "frobnicate": "No such command",
    "dmo": "Did you mean 'demo'?",
    "shema": "Did you mean 'schema'?",
    "shwo": "Did you mean 'show'?",
    "schema chek --json": "Did you mean 'schema check'?",
    "ledger crate": "Did you mean 'ledger create'?",
    "datasets lst": "Did you mean 'datasets list'?",
    "datasets fetch abalon": "did you mean 'abalone'?",
}


@pytest.mark.parametrize("typed", CASES)
def test_wrong_usage_exits_with_2_says_why_and_leaves_no_file(typed, tmp_path):
    failed(here(*typed.split(" "), cwd=tmp_path), 2, CASES[typed], stdout="")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("typed", ["schema zzz", "frobnicate"])
def test_what_resembles_nothing_is_told_without_a_guess(typed):
    done = failed(here(*typed.split()), 2)
    assert "Did you mean" not in done.stderr
