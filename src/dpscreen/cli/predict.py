"""`dpscreen predict`: a model file applied to a table."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from dpscreen._core.words import how_many
from dpscreen.cli.console import HELP, MODEL, data_failures, loaded, write_failures

if TYPE_CHECKING:
    from dpscreen._core.arrays import Array
    from dpscreen.models import LoadedModel
    from dpscreen.tables.schema import TableSchema

COLUMN, CHANCE = "prediction", "chance"
_TOGETHER = 1 << 16


@click.command(context_settings=HELP)
@MODEL
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the predictions to this CSV file; else they go to stdout.",
)
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
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
    from dpscreen._core.files import write_text

    if output is not None and output.exists() and not force:
        raise click.ClickException(f"{output} exists already; give another name, or --force.")
    found = loaded(model)
    values, column = _predictions(found, data), CHANCE if hasattr(found, "classes_") else COLUMN
    if output is None:
        for text in _lines(values, column):
            click.echo(text, nl=False)
        return
    with write_failures(output):
        write_text(output, "".join(_lines(values, column)))
    click.echo(f"{len(values)} predictions written to {output}.", err=True)


def _lines(values: Array, column: str) -> Iterator[str]:
    """Yield the lines of a CSV file, many at a time; numbers read back as they are."""
    yield f"{column}\n"
    for first in range(0, len(values), _TOGETHER):
        yield "".join(f"{value!r}\n" for value in values[first : first + _TOGETHER].tolist())


def _predictions(model: LoadedModel, data: Path) -> Array:
    from dpscreen.tables.reading import read_features
    from dpscreen.tables.schema import TableSchema

    if model.schema is None:
        raise click.ClickException(
            "the model was saved without a schema, so it is not known which columns it needs; use "
            "dpscreen.load and predict in Python, or save it with a schema."
        )
    with data_failures():
        schema = TableSchema.from_dict(model.schema)
        schema.check()
        absent: Counter[str] = Counter()
        rows = read_features(data, schema, features=_features(model, schema), absent=absent)
    if not len(rows):
        raise click.ClickException(f"{data} has no rows to predict for.")
    _tell_absent(absent, len(rows))
    return schema.untransform_target(_predicted(model, rows))


def _tell_absent(absent: Counter[str], n_rows: int) -> None:
    """Say how many cells are filled by the schema's rule instead of being read."""
    for name, count in absent.items():
        if count:
            click.echo(
                f"Note: {count} of {how_many(n_rows, 'cell')} of column {name!r} "
                f"{'is' if count == 1 else 'are'} missing or cannot be read: counted as the "
                "schema's fill, the middle of the bounds, or the first level.",
                err=True,
            )


def _predicted(model: LoadedModel, rows: Array) -> Array:
    """Predict for columns whose names were compared before, so that they need none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        chances = getattr(model, "predict_proba", None)
        return model.predict(rows) if chances is None else np.asarray(chances(rows)[:, 1])


def _features(model: LoadedModel, schema: TableSchema) -> list[str]:
    """Return the names of the model's features, which may have one for every level."""
    from dpscreen.models.raw import NoFormula, described_features

    named = hasattr(model, "feature_names_in_")
    names = model.feature_names_in_ if named else [""] * model.n_features_in_
    try:
        return described_features(schema, list(map(str, names)), named=named)
    except NoFormula as problem:
        raise click.ClickException(str(problem)) from None
