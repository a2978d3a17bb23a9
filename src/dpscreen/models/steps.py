"""Steps of scikit-learn that learnt from private rows before a private model: refused.

A private model does not know the pipeline that it is in, so `fit` looks up its callers. What a
step learnt is found by its fitted attributes; steps whose result for a row depends on that row and
on public numbers have none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from dpscreen._core.messages import message

INSTEAD = {
    "preprocessing": "bounds",
    "impute": "fill",
    "feature_selection": "selects",
    "decomposition": "selects",
}
"""What replaces a step inside the budget, by the module of scikit-learn that it is from."""
_OTHERWISE = "by-row"
_PUBLIC = {"n_features_in_", "feature_names_in_", "n_output_features_", "n_features_out_"}


def _lists_levels(encoder: Any) -> bool:
    """Whether an encoder was given its levels, and does not count how often they occur."""
    rare = (getattr(encoder, name, None) for name in ("min_frequency", "max_categories"))
    return not isinstance(encoder.categories, str) and all(one is None for one in rare)


_DECLARED: dict[str, Callable[[Any], bool]] = {
    "OneHotEncoder": _lists_levels,
    "OrdinalEncoder": _lists_levels,
    "SimpleImputer": lambda step: step.strategy == "constant" and not step.add_indicator,
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
}
"""Steps that hold what was declared, if so asked for."""


class LearntStep(ValueError):
    """A step before a private model learnt from its rows, without noise. Nothing was booked."""


def refuse_learnt_steps() -> None:
    """Raise `LearntStep` if a pipeline that fits the model has steps that learnt from rows."""
    if "sklearn.pipeline" not in sys.modules:  # nobody has made one, and importing it takes time
        return
    found = {type(step).__name__: step for owner in _callers() for step in _learnt(owner)}
    if not found:
        return
    modules = (type(step).__module__.split(".") for step in found.values())
    advice = dict.fromkeys(
        INSTEAD.get(name[1], _OTHERWISE) if name[0] == "sklearn" else _OTHERWISE for name in modules
    )
    instead = "; ".join(message(f"step.{one}") for one in advice)
    raise LearntStep(message("step.learnt", steps=tuple(found), instead=instead))


def _callers() -> Iterator[Any]:
    """Yield the pipelines and the like among those that called `fit`."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "fit" else None
        if isinstance(owner, Pipeline | TransformedTargetRegressor):
            yield owner
        frame = frame.f_back


def _learnt(step: Any) -> Iterator[Any]:
    """Yield the steps within a step that hold what they learnt from rows."""
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import FeatureUnion, Pipeline

    match step:
        case None | str() | FrozenEstimator():
            return
        case Pipeline():
            parts = [one for _, one in step.steps]
        case FeatureUnion():
            parts = [one for _, one in step.transformer_list]
        case ColumnTransformer():
            parts = [one for _, one, _ in getattr(step, "transformers_", ())]
        case TransformedTargetRegressor():
            parts = [getattr(step, "transformer_", None)]
        case _:
            if _learns(step):
                yield step
            return
    for part in parts:
        yield from _learnt(part)


def _learns(step: Any) -> bool:
    from sklearn.utils import get_tags

    if not hasattr(step, "transform") or not get_tags(step).requires_fit:
        return False
    if _DECLARED.get(type(step).__name__, lambda _: False)(step):
        return False
    held = {name for name in vars(step) if name.endswith("_") and not name.startswith("_")}
    return bool(held - _PUBLIC)
