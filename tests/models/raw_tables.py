"""Three raw tables with every kind of column, and what runs exports of a model on them.

Columns: categories whose names try to end a literal, yes and no, true and false, dates in two
formats, whole numbers as levels, transformed numbers, numbers beyond their bounds, missing cells by
several words, and cells that cannot be read.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpscreen import PrivateLasso, PrivateLogisticLasso, load
from dpscreen.cli.predict import _predictions
from dpscreen.models.file import write
from dpscreen.tables.schema import TableSchema

NASTY = (
    *("plain", "it's", 'a "b"', "back\\slash", "\\' OR 1=1 --", "'); DROP TABLE rows;--"),
    *(
        "`tick`",
        "new\nline",
        "tab\there",
        "a  b",
        "ünï",
        "日本",
        "A",
        "a",
        "*/ x /*",
        "$$x$$",
        "{0} %s",
    ),
)
N_ROWS = 240


def number(name: str, low: float, high: float, kind: str = "number") -> dict[str, Any]:
    return {"name": name, "type": kind, "constraints": {"minimum": low, "maximum": high}}


def day(name: str, low: str, high: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "date", "constraints": {"minimum": low, "maximum": high}, **more}


def levels(name: str, enum: list[Any], kind: str = "string") -> dict[str, Any]:
    return {"name": name, "type": kind, "constraints": {"enum": enum}}


def truth(name: str, yes: list[str] | None = None, no: list[str] | None = None) -> dict[str, Any]:
    told = {"trueValues": yes, "falseValues": no} if yes and no else {}
    return {"name": name, "type": "boolean", **told}


PARTS = ["days", "weekday", "month", "year"]
TABLES: dict[str, dict[str, Any]] = {
    "costs": {  # a logarithm of the target
        "fields": [
            number("age", 18, 90),
            truth("smoker", ["yes"], ["no"]),
            levels('the ward\'s "name"', list(NASTY)),
            number("income", 100, 1e6),
            day("joined", "2010-01-01", "2024-12-31", parts=PARTS),
            number("cost", 1, 5e4),
        ],
        "missingValues": ["", "NA", "-999"],
        "dpscreen": {
            "target": "cost",
            "fill": {"age": 40, 'the ward\'s "name"': "it's"},
            "transform": {"income": "log", "cost": "log"},
        },
    },
    "marks": {  # nothing but defaults, a day written otherwise, and levels that are numbers
        "fields": [
            truth("true or false"),
            levels("grade", [1, 2, 3], "integer"),
            number("visits", 0, 400, "integer"),
            day(
                "seen",
                "1960-06-30",
                "2024-12-31",
                format="%d.%m.%Y",
                parts=["days", "year"],
            ),
            levels("select", ["1", "two", "true story"]),
            number("y", -5, 12),
        ],
        "dpscreen": {"target": "y", "transform": {"visits": "sqrt"}, "fill": {"grade": 2}},
    },
    "outcomes": {
        "fields": [
            number("a`b\\c", -1, 1),
            truth("member", ["Y", "T"], ["N", "F"]),
            number("spent; --", 0, 1e4),
            day("born", "1930-01-01", "2010-12-31", parts=["weekday", "year"]),
            levels("from", ["north", "south"]),
            truth("sick", ["yes"], ["no"]),
        ],
        "missingValues": ["", "?"],
        "dpscreen": {
            "target": "sick",
            "transform": {"spent; --": "log1p"},
            "fill": {"member": True, "born": "1980-02-29", "from": "south"},
        },
    },
    "terms": {  # a formula: functions, powers, splines, interactions, comparisons, parts of a date
        "fields": [
            number("age", 18, 90),
            number("income; --", 100, 1e6),
            number("hours", 0, 80),
            truth("smoker", ["yes"], ["no"]),
            levels("ward", ["A", "it's", "C"]),
            day("joined", "2010-01-01", "2024-12-31", parts=["days", "month", "weekday"]),
            number("cost", 1, 5e4),
        ],
        "missingValues": ["", "NA", "-999"],
        "dpscreen": {
            "target": "cost",
            "fill": {"hours": 40},
            "formula": "log(cost) ~ age*smoker + I(age**2) + log(`income; --`) + log1p(hours) "
            "+ joined + bs(age, knots=[40, 60]) + poly(hours, 3, raw=True) + I(age > 65) "
            "+ sqrt(hours) + log10(`income; --`) + log2(`income; --`) + ward",
        },
    },
}

TABLES["interactions"] = TABLES["terms"] | {
    "dpscreen": {
        "target": "cost",
        "fill": {"hours": 40},
        "formula": "cost ~ age*hours + ward*smoker + ward:bs(age, knots=[40]) "
        "+ I(minimum(age, hours) / (1 + age)) + abs(hours - age) + I(`income; --` / age)",
    }
}


def cells(field: dict[str, Any], transform: str, rng: np.random.Generator, n: int) -> list[str]:
    """Return texts of a column as a CSV file has them, some beyond its bounds."""
    limits = field.get("constraints", {})
    if "enum" in limits:
        return [str(one) for one in rng.choice(np.array(limits["enum"], dtype=object), n)]
    if field["type"] == "boolean":
        words = [*field.get("trueValues", ["true", "True"]), *field.get("falseValues", ["false"])]
        return [str(one) for one in rng.choice(words, n)]
    low, high = limits["minimum"], limits["maximum"]
    if field["type"] == "date":
        first, last = date.fromisoformat(low), date.fromisoformat(high)
        span = (last - first).days
        form = field.get("format", "%Y-%m-%d")
        drawn = rng.integers(-400, span + 400, n)
        return [(first + timedelta(days=int(one))).strftime(form) for one in drawn]
    drawn = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, n)
    if transform == "log":
        drawn = np.exp(rng.uniform(np.log(low) - 1, np.log(high) + 1, n))
    return [str(round(one)) if field["type"] == "integer" else repr(float(one)) for one in drawn]


def raw_table(which: str, n: int = N_ROWS) -> pd.DataFrame:
    """Return the raw cells as texts, an empty one where there is none, the target left out."""
    rng, told = np.random.default_rng(len(which)), TABLES[which]
    transforms = told["dpscreen"].get("transform", {})
    fields = [one for one in told["fields"] if one["name"] != told["dpscreen"]["target"]]
    table = pd.DataFrame(
        {one["name"]: cells(one, transforms.get(one["name"], ""), rng, n) for one in fields}
    )
    gone = np.array(told.get("missingValues", [""]))
    holes = rng.random(table.shape) < 0.12
    return table.mask(holes, pd.DataFrame(rng.choice(gone, table.shape), columns=table.columns))


ODD = {
    "terms": {
        "age": ["abc", " 33 ", "+4e1", "1e5", "true", "-999.0"],
        "hours": ["x", "FALSE", "41.5", "-3", "NA", "2e2"],
        "smoker": [" yes ", "Yes", "1", "maybe", "0.0"],
        "ward": [" it's ", "IT'S", "stranger"],
        "joined": ["2020-02-30", "2020-1-5", "2020-12-31 23:59", "yesterday"],
    },
    "costs": {
        "age": ["abc", " 33 ", "+4e1", "1e5", "true", ".5", "12 years", "-999.0"],
        "smoker": [" yes ", "Yes", "1", "maybe", "0.0"],
        'the ward\'s "name"': [" it's ", "IT'S", "stranger"],
        "joined": ["2020-02-30", "2020-1-5", "2020-12-31 23:59", "yesterday", "2020-13-01"],
    },
    "marks": {
        "true or false": ["1", "0.0", " TRUE", "yes"],
        "grade": ["1.0", "7", " 3", "x", "+2", "true"],
        "seen": ["1.2.1999", "31.04.2000", "01.12.2001 10:00"],
        "select": ["1.0", "TRUE", "two ", "Two", "2"],
    },
    "outcomes": {
        "member": ["y", " T"],
        "born": ["2000-02-29", "1900-02-29", "1950-06-01T00:00:00"],
    },
}
ODD["interactions"] = ODD["terms"]
"""Cells in other spellings, of no level, and such as cannot be read."""


def odd_table(which: str) -> pd.DataFrame:
    """Return the table with cells like those of `ODD`, as texts."""
    table = raw_table(which, 60)
    for name, texts in ODD[which].items():
        table.loc[: 2 * len(texts) - 1, name] = texts * 2
    return table


def raw_model(which: str, home: Path) -> Any:
    """Return a model of a table, all of whose features have a coefficient, loaded from its file."""
    schema = TableSchema.from_dict(TABLES[which])
    schema.check()
    names, width = list(schema.feature_names), len(schema.feature_names)
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(rng.uniform(*schema.feature_bounds.T, (400, width)), columns=names)
    told = {"epsilon": 3, "delta": 1e-6, "feature_bounds": schema.feature_bounds}
    if schema.classes is None:
        low, high = schema.target_bounds
        model = PrivateLasso(**told, target_bounds=(low, high))
        model.fit(rows, rng.uniform(low, high, 400))
    else:
        model = PrivateLogisticLasso(**told, classes=schema.classes)
        model.fit(rows, rng.choice(schema.classes, 400))
        low, high = -4.0, 4.0
    released = schema.feature_bounds.copy()  # some of them narrower, as a fit releases them
    span = np.ptp(released, axis=1)
    numbers = ~(released == (0, 1)).all(axis=1)
    released[numbers, 1] -= 0.1 * span[numbers]
    weights = rng.choice([-1, 1], width) * rng.uniform(0.05, 0.3, width) * (high - low) / span
    release = replace(
        model.described(schema=schema.to_dict()),
        coefficients=weights,
        intercept=(low + high) / 2 - float(weights @ schema.feature_bounds.mean(axis=1)),
        feature_bounds=released,
        clips_features=True,
        path=None,
        inference=None,
        quality=None,
        table=None,
        above_noise=None,
    )
    write(release, home / f"{which}.json", force=True)
    return load(home / f"{which}.json")


def predicted(model: Any, table: pd.DataFrame, home: Path) -> np.ndarray:
    """Return what `dpscreen predict` gives for the raw table, as a CSV file."""
    table.to_csv(home / "raw.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    found = _predictions(model, home / "raw.csv", ())
    return found[model.family.target.column].to_numpy()


def typed(table: pd.DataFrame, which: str) -> pd.DataFrame:
    """Return the table as a database or a reader types it: numbers, truths and days as such."""
    found, told = table.copy(), TABLES[which]
    gone = told.get("missingValues", [""])
    for field in told["fields"]:
        name = field["name"]
        if name not in table:
            continue
        column = table[name].where(~table[name].isin(gone), None)
        if field["type"] in ("number", "integer"):
            found[name] = pd.to_numeric(column)
        elif field["type"] == "date":
            found[name] = pd.to_datetime(column, format=field.get("format", "%Y-%m-%d"))
        elif field["type"] == "boolean" and "trueValues" not in field:
            found[name] = column.map({"true": True, "True": True, "false": False})
        else:
            found[name] = column
    return found


# --- what runs an export --------------------------------------------------------------------------


def by_sqlite(formula: str, table: pd.DataFrame) -> np.ndarray:
    table = table.copy()
    for name in table:
        if pd.api.types.is_datetime64_any_dtype(table[name]):
            table[name] = table[name].dt.strftime("%Y-%m-%d")
    with sqlite3.connect(":memory:") as base:
        for name in ("exp", "sqrt"):  # not every build of SQLite has them
            base.create_function(name, 1, getattr(math, name))
        base.create_function("ln", 1, math.log)
        table.to_sql("rows", base, index=False)
        return np.array([one for (one,) in base.execute(f"SELECT {formula} FROM rows")], float)


def by_duckdb(formula: str, table: pd.DataFrame) -> np.ndarray:
    import duckdb

    with duckdb.connect() as base:
        base.register("given", table)
        days = [one for one in table if pd.api.types.is_datetime64_any_dtype(table[one])]
        cast = ", ".join(f'"{one}"::DATE AS "{one}"' for one in days)
        base.execute(
            f"CREATE TABLE rows AS SELECT * {f'REPLACE ({cast})' if cast else ''} FROM given"
        )
        return np.array(base.execute(f"SELECT {formula} FROM rows").fetchall(), float)[:, 0]


def by_r(formula: str, table: pd.DataFrame, home: Path) -> np.ndarray:
    """Run R on a CSV file, whose columns have the types of the frame."""
    table, types = table.copy(), []
    for name in table:
        if pd.api.types.is_datetime64_any_dtype(table[name]):
            table[name] = table[name].dt.strftime("%Y-%m-%d")
            types.append("Date")
        else:
            kinds = {"b": "logical", "f": "numeric", "i": "numeric"}
            types.append(kinds.get(table[name].dtype.kind, "character"))
    table.to_csv(home / "r.csv", index=False, na_rep="\\N")
    (home / "formula.R").write_text(formula, encoding="utf-8")
    script = f"""
    options(digits = 17)
    d <- read.csv("r.csv", colClasses = c({", ".join(f'"{one}"' for one in types)}),
                  na.strings = "\\\\N", check.names = FALSE, encoding = "UTF-8")
    found <- with(d, eval(parse("formula.R", encoding = "UTF-8")))
    writeLines(formatC(found, digits = 17, format = "g"), "found.txt")
    """
    (home / "run.R").write_text(script, encoding="utf-8")
    call = [str(shutil.which("Rscript")), "--vanilla", "run.R"]
    told = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(call, cwd=home, capture_output=True, text=True, check=False, env=told)
    assert done.returncode == 0, done.stderr
    return np.array([float(one) for one in (home / "found.txt").read_text().split()])


def by_libreoffice(formula: str, table: pd.DataFrame, home: Path) -> np.ndarray:
    """Run a sheet, in whose row j the formula stands for row j."""
    from openpyxl import Workbook, load_workbook

    book = Workbook()
    sheet = book.active
    sheet.append([*table.columns, "prediction"])
    cell = re.compile(r'("(?:[^"]|"")*")|\b([A-Z]{1,3})2\b')
    for row, values in enumerate(table.itertuples(index=False), 2):
        for place, value in enumerate(values, 1):
            if pd.isna(value):
                continue
            shown = value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
            written = sheet.cell(row, place)
            written.value = shown
            if isinstance(shown, str):
                written.data_type = "s"
        moved = cell.sub(lambda one, at=row: one[1] or f"{one[2]}{at}", formula)
        sheet.cell(row, table.shape[1] + 1).value = moved
    book.save(home / "in.xlsx")
    call = [
        str(shutil.which("soffice")),
        "--headless",
        "--convert-to",
        "xlsx:Calc MS Excel 2007 XML",
    ]
    call += [f"-env:UserInstallation=file://{home}/profile", "--outdir", "out", "in.xlsx"]
    done = subprocess.run(call, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = load_workbook(home / "out" / "in.xlsx", data_only=True).active
    last = [row[-1] for row in found.iter_rows(min_row=2, values_only=True)]
    return np.array([np.nan if isinstance(one, str) else float(one) for one in last])


def by_onnx(content: bytes, table: pd.DataFrame) -> np.ndarray:
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    run = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {}
    for one in run.get_inputs():
        if one.name == "features":
            feed[one.name] = table.to_numpy(float)
            continue
        column = table[one.name]
        if one.type == "tensor(string)":
            texts = column.where(column.notna(), "").map(str)
            feed[one.name] = texts.to_numpy(object)[:, None]
        elif pd.api.types.is_datetime64_any_dtype(column):
            days = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            feed[one.name] = days.to_numpy(float)[:, None]
        else:
            feed[one.name] = column.to_numpy(float)[:, None]
    return run.run(None, feed)[-1][:, -1]


def metadata(content: bytes) -> dict[str, Any]:
    import onnx

    found = {one.key: one.value for one in onnx.load_from_string(content).metadata_props}
    return found | {"privacy_statement": json.loads(found["privacy_statement"])}
