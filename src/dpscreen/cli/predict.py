"""`dpscreen predict`: a model file applied to a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from dpscreen._core.files import write_text
from dpscreen._core.words import some
from dpscreen.cli import console
from dpscreen.tables.reading import read_features
from dpscreen.tables.schema import TableSchema

if TYPE_CHECKING:
    from dpscreen._core.arrays import Array
    from dpscreen.models import LoadedModel

_TOGETHER = 1 << 16


@click.command()
@click.argument("model", type=console.PATH)
@click.argument("data", type=console.PATH)
@console.OUTPUT(help="Write the predictions to this CSV file; else they go to stdout.")
@console.FORCE(help="Replace the output if it exists.")
def command(model: Path, data: Path, output: Path | None, force: bool) -> None:
    """Predict the target for every row of a table: one column, in the order of the rows.

    For a target of two outcomes it is the chance of the second, as the summary names them.

    DATA is a CSV, gzip CSV, Parquet or Excel file with the columns of the schema that the model
    keeps; the target need not be there. Nothing protects these rows: predictions for private rows
    are as private as the rows. Missing cells count as they did in the fit: as the schema's fill,
    the middle of the bounds, or the first level. Predictions are clipped to the declared bounds of
    the target, and are in its units if it is transformed.

    \b
    Examples:
      dpscreen predict model.json new.csv
      dpscreen predict model.json new.parquet -o predictions.csv
    """
    console.check_output(output, force=force)
    found = console.loaded(model)
    values = _predictions(found, data)
    lines = _lines(values, found.family.prediction_column)
    if output is None:
        for text in lines:
            click.echo(text, nl=False)
        return
    with console.write_failures(output):
        write_text(output, "".join(lines))
    console.say(f"{len(values)} predictions written to {output}.")


def _lines(values: Array, column: str) -> Iterator[str]:
    """Yield the lines of a CSV file, many at a time; numbers read back as they are."""
    yield f"{column}\n"
    for first in range(0, len(values), _TOGETHER):
        yield "".join(f"{value!r}\n" for value in values[first : first + _TOGETHER].tolist())


def _predictions(model: LoadedModel, data: Path) -> Array:
    from dpscreen.models.raw import NoFormula, described_features

    if model.schema is None:
        raise click.ClickException(
            "the model was saved without a schema, so it is not known which columns it needs; use "
            "dpscreen.load and predict in Python, or save it with a schema."
        )
    named = hasattr(model, "feature_names_in_")
    names = model.feature_names_in_ if named else [""] * model.n_features_in_
    incomplete: set[str] = set()
    schema = TableSchema.from_dict(model.schema)
    schema.check()
    try:
        features = described_features(schema, list(map(str, names)), named=named)
    except NoFormula as problem:
        raise click.ClickException(str(problem)) from None
    rows = read_features(data, schema, features=features, incomplete=incomplete)
    if not len(rows):
        raise click.ClickException(f"{data} has no rows to predict for.")
    if incomplete:
        columns = some([repr(name) for name in schema.columns if name in incomplete])
        console.say(
            f"Note: cells of column {columns} are missing or cannot be read: counted as the "
            "schema's fill, the middle of the bounds, or the first level."
        )
    with warnings.catch_warnings():  # names were compared above
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        means = np.asarray(getattr(model, model.family.predicts)(rows))
    return schema.untransform_target(means.reshape(len(rows), -1)[:, -1])
