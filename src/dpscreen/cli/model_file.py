"""What the commands that take a model file share: reading it, and failing in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpscreen._core.words import meant

if TYPE_CHECKING:
    from dpscreen.estimators import LoadedModel

HELP = {"help_option_names": ["-h", "--help"]}
MODEL = click.argument("model", type=click.Path(path_type=Path))


def loaded(path: Path) -> LoadedModel:
    """Return the model in a file, or fail with exit code 1."""
    from dpscreen.estimators import ModelFileProblem, load

    try:
        model = load(path)
    except ModelFileProblem as problem:
        raise click.ClickException(f"{problem}{_guess(path)}") from None
    if not model.privacy_.holds:
        click.echo("Warning: the privacy statement of this model does not hold.", err=True)
    return model


def _guess(path: Path) -> str:
    """Name a file beside one that does not exist, if it may have been meant."""
    if path.exists() or not path.absolute().parent.is_dir():
        return ""
    close = meant(path.name, [one.name for one in path.absolute().parent.glob("*.json")])
    return f" Did you mean {path.with_name(close)}?" if close else ""
