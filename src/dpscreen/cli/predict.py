"""`dpscreen predict`: a model file applied to a table."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dpscreen._core.files import write_text
from dpscreen._core.words import some
from dpscreen.cli import console
from dpscreen.tables.reading import feature_batches
from dpscreen.tables.schema import TableSchema

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel

_TOGETHER = 1 << 16


@click.command()
@click.argument("model", type=console.PATH)
@click.argument("data", type=console.DATA)
@console.database_options
@click.option("--id", "ids", multiple=True, help="Column to keep in the output; may be repeated.")
@console.OUTPUT(help="Write the predictions to this CSV file.  [default: stdout]")
@click.option("--into", help="Write the predictions to a new table of the same database.")
@console.FORCE(help="Replace the output if it exists.")
def command(
    model: Path,
    data: Any,
    table: str | None,
    query: str | None,
    ids: tuple[str, ...],
    output: Path | None,
    into: str | None,
    force: bool,
) -> None:
    """Predict the target for every row of a table: one column, beside those named by --id.

    For a binary outcome this is the probability of the second class, as the summary names them.

    DATA is a CSV, gzip CSV, Parquet or Excel file with the columns of the schema that the model
    keeps, or a table of a database (--table, --query); the target need not be there. Rows of a file
    keep their order. Those of a database have none, so name the columns that identify them (--id).
    Nothing protects these rows: predictions for private rows are as confidential as the rows.
    Missing cells count as they did in the fit: as the schema's fill, the released centre, or the
    first level. Predictions are clipped to the declared bounds of the target, and are on its
    original scale if it is transformed.


    \b
    Examples:
      dpscreen predict model.json new.csv
      dpscreen predict model.json new.parquet -o predictions.csv
      dpscreen predict model.json duckdb:clinic.db --table visits --id visit \\
          --into predicted_cost
    """
    source = console.table_of(data, table, query)
    if into is not None and isinstance(source, Path):
        raise click.UsageError("--into is for rows of a database.")
    console.check_output(output, force=force)
    found = console.loaded(model)
    predicted = _predictions(found, source, ids)
    if into is not None:
        source.write(predicted, into, replace=force)
        console.say(f"{len(predicted)} predictions written to the table {into}.")
    elif output is None:
        for text in _lines(predicted):
            click.echo(text, nl=False)
    else:
        with console.write_failures(output):
            write_text(output, "".join(_lines(predicted)))
        console.say(f"{len(predicted)} predictions written to {output}.")


def _lines(predicted: Any) -> Iterator[str]:
    """Yield the lines of a CSV file, many at a time; numbers read back as they are."""
    yield _csv([predicted.column_names])
    for batch in predicted.to_batches(max_chunksize=_TOGETHER):
        yield _csv(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _csv(rows: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _predictions(model: LoadedModel, data: Any, ids: tuple[str, ...]) -> Any:
    """Return the columns that identify the rows and the prediction, as an Arrow table."""
    import pyarrow as pa

    from dpscreen.tables.encode import unmixed

    schema, features = _declared(model)
    incomplete: set[str] = set()
    parts = []
    with warnings.catch_warnings():  # names are compared already
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        for kept, rows in feature_batches(
            data, schema, features=features, ids=ids, incomplete=incomplete
        ):
            if not len(rows):
                continue
            means = np.asarray(getattr(model, model.family.target.predicts)(rows))
            values = means.reshape(len(rows), -1)[:, -1]
            name = model.family.target.column
            parts.append(pa.table([*kept.columns, values], names=[*ids, name]))
    if not parts:
        shown = data if isinstance(data, Path) else data.name
        raise click.ClickException(f"{shown} has no rows to predict for.")
    if incomplete:
        names = some([repr(name) for name in schema.columns if name in incomplete])
        console.say(
            f"Note: cells of column {names} are missing or cannot be read: counted as the schema's "
            "fill, the released centre, or the first level."
        )
    found = pa.concat_tables(parts)
    return pa.table({name: unmixed(found[name]) for name in found.column_names})


def _declared(model: LoadedModel) -> tuple[TableSchema, list[str]]:
    """Return the schema that the model keeps, and what it calls the features."""
    from dpscreen.models.raw import NoFormula, described_features

    if model.schema is None:
        raise click.ClickException(
            "The model was saved without a schema, so it is not known which columns it needs; use "
            "dpscreen.load and predict in Python, or save it with a schema."
        )
    named = hasattr(model, "feature_names_in_")
    names = model.feature_names_in_ if named else [""] * model.n_features_in_
    schema = TableSchema.from_dict(model.schema)
    schema.check()
    try:
        return schema, described_features(schema, list(map(str, names)), named=named)
    except NoFormula as problem:
        raise click.ClickException(str(problem)) from None
