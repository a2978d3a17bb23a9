"""The gate that every export passes: it carries the privacy statement, or refuses.

What other software runs (SQL, R, Excel, ONNX, a scikit-learn pipeline) can show the statement as a
comment or a property only. So a model whose guarantee does not hold is refused there unless it is
forced, and then the mark travels along. The model file, the card, the page and a pickle hold the
whole statement, from which everything that shows them begins with the mark: they are not refused.
"""

from __future__ import annotations

from typing import Any

from dpscreen._core.words import prose
from dpscreen.models.release import Release, promise


class NotPrivate(ValueError):
    """A model whose guarantee does not hold, and that was not exported by force."""


def statement_for(release: Release, *, force: bool = False) -> dict[str, Any]:
    """Return what travels with an export: a line of text, and the statement in plain values.

    Raises
    ------
    NotPrivate
        The guarantee does not hold, and `force` is False.
    """
    told = prose(promise(release))
    if not (release.statement.holds or force):
        raise NotPrivate(f"{told} It is exported only by force (force=True, --force).")
    return {"privacy": told, "statement": release.statement.to_dict()}
