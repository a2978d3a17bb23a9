"""The model file: JSON that can be read, checked and handed over, and that can run nothing.

What is written is a `Release`. What is read is not trusted: its size, encoding, nesting, numbers
and shape are checked before anything is made of it, and so is whether it contradicts itself.
docs/model-file.md describes the format.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.files import NotStrictJson, strict_json, write_bytes
from dpscreen._core.words import plain
from dpscreen.models.categories import FrameColumns
from dpscreen.models.regression_table import (
    RegressionTable,
    constant_beside,
    table_fields,
    table_of_fields,
)
from dpscreen.models.release import Release, checked_about
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.base import Path
from dpscreen.solvers.inference import FeatureInterval, Inference
from dpscreen.solvers.quality import NOISE, OutcomeQuality, Quality

FORMAT, VERSION = "dpscreen-model", 1
MOST_BYTES = 100 * 2**20
FIELDS = (
    *("estimator", "named", "features", "intercept", "target_bounds", "clips_features"),
    *("fit_intercept", "n_iter", "n_rows", "solver", "scale", "max_features", "path", "inference"),
    *("quality", "bounds_notes"),
)
"""What a file says of the model, in this order."""


class ModelFileProblem(ValueError):
    """A model file that cannot be read or written, and why. Nothing of it was used."""


# --- writing --------------------------------------------------------------------------------------


def write(release: Release, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a model file whole or not at all; one that exists is replaced only if `force`."""
    content = encoded(release)
    decoded(content)  # what is written can be read
    target = FilePath(path)
    try:
        write_bytes(target, content, force=force)
    except FileExistsError:
        message = f"{target} exists already; give another name, or force=True."
        raise ModelFileProblem(message) from None
    except OSError as error:
        raise ModelFileProblem(f"cannot write {target}: {error.strerror or 'it failed'}.") from None


def encoded(release: Release) -> bytes:
    """Return the content of a model file. Floats are written so that they read back exactly."""
    try:
        return f"{_laid_out(to_dict(release))}\n".encode()
    except (TypeError, ValueError, RecursionError):
        message = "the model or its schema holds something that JSON cannot: only text that is "
        message += "Unicode, finite numbers, true, false, null, lists and objects can be written."
    raise ModelFileProblem(message)


def _laid_out(value: Any, level: int = 0) -> str:
    """Return JSON for people: a line for each field, and for each object in a list."""
    start, end = "\n" + " " * (level + 1), "\n" + " " * level
    if isinstance(value, dict) and value and level < 2:
        fields = (f"{_json(name)}: {_laid_out(one, level + 1)}" for name, one in value.items())
        return "{" + start + f",{start}".join(fields) + end + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + start + f",{start}".join(map(_json, value)) + end + "]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def to_dict(release: Release) -> dict[str, Any]:
    """Return a release in plain values."""
    values = vars(release) | {"features": _features(release)}
    if release.classes is not None:
        values |= {"quality": None, "outcome_quality": release.quality}
    return {
        "format": FORMAT,
        "version": VERSION,
        "library": {"name": "dpscreen", "version": __version__},
        "model": {name: _plain(values[name]) for name in (*FIELDS, *_optional(release))},
        "statement": release.statement.to_dict(),
        "schema": None if release.schema is None else dict(release.schema),
    }


def _optional(release: Release) -> tuple[str, ...]:
    """Return the fields that only some files have."""
    return (
        *(("categories",) if release.categories else ()),
        *(("table",) if release.table is not None else ()),
        *(("classes", "outcome_quality") if release.classes is not None else ()),
        *(("standing_out",) if release.standing_out is not None else ()),
        *(("declared_bounds",) if release.declared_bounds is not None else ()),
        *(("about",) if release.about else ()),
        *(("fallback",) if release.fallback is not None else ()),
    )


def _features(release: Release) -> list[dict[str, Any]]:
    columns = release.names, release.coefficients.tolist(), release.feature_bounds.tolist()
    keys = ("name", "coefficient", "bounds")
    return [dict(zip(keys, one, strict=True)) for one in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.tolist()
        case Path() | Inference():
            return {name: _plain(one) for name, one in vars(value).items()}
        case Quality() | OutcomeQuality():  # what is not known is null
            return {name: _plain(_or_none(one)) for name, one in vars(value).items()}
        case RegressionTable():
            return table_fields(value)
        case FeatureInterval():  # the features have the names
            return {name: one for name, one in vars(value).items() if name != "name"}
        case tuple():
            return list(map(_plain, value))
        case dict():
            return {name: _plain(one) for name, one in value.items()}
    return value


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


# --- reading --------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> Release:
    """Return the release that a file holds, or raise `ModelFileProblem`."""
    try:
        return decoded(_bytes_of(FilePath(path)))
    except ModelFileProblem as problem:
        message = f"{plain(os.fspath(path))}: {problem}"
    raise ModelFileProblem(message)


def _bytes_of(path: FilePath) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFileProblem("not a file.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileProblem):
            raise
        message = getattr(error, "strerror", None) or "cannot be opened"
    else:
        return content
    raise ModelFileProblem(f"{message}.")


def decoded(content: bytes) -> Release:
    """Return the release in the content of a file, or raise `ModelFileProblem`."""
    if len(content) > MOST_BYTES:
        raise ModelFileProblem(f"larger than {MOST_BYTES // 2**20} MB: not read.")
    found = _parsed(content)
    _check_kind(found)
    _check_shape(found)
    try:
        release = _release(found)
    except ValueError as error:
        raise ModelFileProblem(f"contradicts itself: {error}") from None
    problem = contradiction(release)
    if problem:
        raise ModelFileProblem(f"contradicts itself: {problem}")
    return release


def _parsed(content: bytes) -> Any:
    try:
        return strict_json(content)
    except NotStrictJson as problem:
        message = f"{problem}."
    raise ModelFileProblem(message)


def _check_kind(found: Any) -> None:
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        raise ModelFileProblem('not a dpscreen model: it does not say "format": "dpscreen-model".')
    version = found.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileProblem("does not say which version of the format it has.")
    if version > VERSION:
        raise ModelFileProblem(
            f"written in version {version} of the format, and this dpscreen, {__version__}, reads "
            f"version {VERSION}: use a newer dpscreen."
        )


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a model file, which comes with the package."""
    file = resources.files("dpscreen.models").joinpath("model.schema.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json_schema())


def _check_shape(found: Any) -> None:
    error = next(_validator().iter_errors(_shortened(found)), None)
    if error is not None:
        raise ModelFileProblem(f"not as the format says: {_described(error)}")


def _shortened(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the file with its first feature alone, if all are plainly as the schema says.

    A validator takes a tenth of a millisecond for each; models may have very many.
    """
    model = found.get("model")
    features = model.get("features") if isinstance(model, dict) else None
    if not isinstance(features, list) or not all(map(_is_feature, features)):
        return found
    short = {**model, "features": features[:1]}  # type: ignore[dict-item]
    declared = short.get("declared_bounds")
    if isinstance(declared, list) and all(map(_is_pair, declared)):
        short["declared_bounds"] = declared[:1]
    return {**found, "model": short}


def _is_feature(one: Any) -> bool:
    """Whether an object satisfies the JSON Schema of a feature."""
    if type(one) is not dict or one.keys() != {"name", "coefficient", "bounds"}:
        return False
    if type(one["name"]) is not str or not _is_pair(one["bounds"]):
        return False
    return _within(one["coefficient"], 1e200)


def _is_pair(bounds: Any) -> bool:
    """Whether bounds satisfy the JSON Schema."""
    if type(bounds) is not list or len(bounds) != 2:
        return False
    return all(_within(end, 1e100) for end in bounds)


def _within(value: Any, limit: float) -> bool:
    return type(value) in (float, int) and -limit <= value <= limit


def _described(error: Any) -> str:
    """Return what a validation error means, without the value that it is about."""
    place = plain("/".join(map(str, error.absolute_path))) or "the file"
    rule = error.validator_value
    match error.validator:
        case "required":
            absent = [name for name in rule if name not in error.instance]
            return f"{place} lacks {', '.join(absent)}."
        case "additionalProperties":
            known = error.schema.get("properties", {})
            extra = [plain(name) for name in error.instance if name not in known]
            return f"{place} has a field that is not known, {', '.join(extra[:3])}."
        case "type":
            kinds = rule if isinstance(rule, list) else [rule]
            return f"{place} must be of type {' or '.join(kinds)}."
    return f"{place} must satisfy {error.validator} {plain(json.dumps(rule))}."


def _release(found: Mapping[str, Any]) -> Release:
    model = found["model"]
    features, notes = model["features"], model.get("bounds_notes")
    names = tuple(one["name"] for one in features)
    return Release(
        estimator=model["estimator"],
        names=names,
        named=model["named"],
        coefficients=np.array([one["coefficient"] for one in features], dtype=np.float64),
        intercept=float(model["intercept"]),
        feature_bounds=np.array([one["bounds"] for one in features], dtype=np.float64),
        target_bounds=np.array(model["target_bounds"], dtype=np.float64),
        clips_features=model["clips_features"],
        fit_intercept=model["fit_intercept"],
        n_iter=int(model["n_iter"]),
        statement=PrivacyStatement.from_dict(found["statement"]),
        n_rows=_whole(model["n_rows"]),
        solver=model["solver"],
        scale=None if model["scale"] is None else float(model["scale"]),
        path=_read_path(model["path"]),
        max_features=_whole(model["max_features"]),
        inference=_read_inference(model["inference"], names),
        categories={name: tuple(one) for name, one in model.get("categories", {}).items()},
        quality=_read_quality(model.get("quality"))
        or _read_outcome_quality(model.get("outcome_quality")),
        bounds_notes=None if notes is None else tuple(map(plain, notes)),
        table=_read_table(model, names),
        schema=found["schema"],
        classes=tuple(model["classes"]) if "classes" in model else None,
        standing_out=tuple(model["standing_out"]) if "standing_out" in model else None,
        about=checked_about(model.get("about", {})),
        declared_bounds=_read_pairs(model.get("declared_bounds")),
        fallback=model.get("fallback"),
    )


def _read_pairs(found: Sequence[Sequence[float]] | None) -> Array | None:
    return None if found is None else np.array(found, dtype=np.float64)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _read_path(found: Mapping[str, Any] | None) -> Path | None:
    if found is None:
        return None
    return Path(
        np.array(found["features"], dtype=np.int64),
        np.array(found["signs"], dtype=np.int64),
        np.array(found["steps"], dtype=np.float64),
        _whole(found.get("n_candidates")),
    )


def _read_quality(found: Mapping[str, Any] | None) -> Quality | None:
    if found is None:
        return None
    sizes, shares = (tuple(map(float, found[name])) for name in ("sizes", "shares"))
    if len(sizes) != len(shares) or list(sizes) != sorted(sizes) or list(shares) != sorted(shares):
        raise ValueError("sizes and shares of residuals must be as many, and must not decrease.")
    known = _measures(found, "r2", "r2") | _measures(found, "typical_error", "error")
    return Quality(**known, in_sample=found["in_sample"], sizes=sizes, shares=shares)


def _read_outcome_quality(found: Mapping[str, Any] | None) -> OutcomeQuality | None:
    if found is None:
        return None
    edges, no, yes = (tuple(map(float, found[name])) for name in ("edges", "no", "yes"))
    if not len(no) == len(yes) == len(edges) + 1 or list(edges) != sorted(edges):
        raise ValueError("chances must not decrease, and counts be one more than they are.")
    known = _measures(found, "auc", "auc") | _measures(found, "deviance", "deviance")
    null = found["null_deviance"]
    return OutcomeQuality(
        **known,
        null_deviance=math.nan if null is None else float(null),
        in_sample=found["in_sample"],
        edges=edges,
        no=no,
        yes=yes,
    )


def _measures(found: Mapping[str, Any], name: str, stem: str) -> dict[str, Any]:
    """Return a measure with its ends and its reason: one without an end is not known."""
    names = name, f"{stem}_low", f"{stem}_high"
    ends = [found[one] for one in names]
    known = None not in ends
    if known and not ends[1] <= ends[0] <= ends[2]:
        raise ValueError(f"{name} must lie between the ends of its interval.")
    reason = None if known else found.get(f"{stem}_reason") or NOISE
    values = ends if known else [math.nan] * 3
    return dict(zip(names, values, strict=True)) | {f"{stem}_reason": reason}


def _read_table(model: Mapping[str, Any], names: tuple[str, ...]) -> RegressionTable | None:
    found = model.get("table")
    if found is None:
        return None
    coefficients, d = [one["coefficient"] for one in model["features"]], len(names)
    if model["fit_intercept"]:
        names, coefficients = (*names, constant_beside(names)), [*coefficients, model["intercept"]]
    return table_of_fields(found, names, coefficients, d)


def _read_inference(found: Mapping[str, Any] | None, names: tuple[str, ...]) -> Inference | None:
    if found is None:
        return None
    intervals = tuple(_read_interval(one, names) for one in found["intervals"])
    return Inference(found["available"], found["wording"], intervals)


def _read_interval(found: Mapping[str, Any], names: tuple[str, ...]) -> FeatureInterval:
    feature = int(found["feature"])
    if feature >= len(names):
        raise ValueError("an interval is for a feature that the model does not have.")
    numbers = (float(found[key]) for key in ("coefficient", "standard_error", "low", "high"))
    return FeatureInterval(feature, names[feature], *numbers)


def contradiction(release: Release) -> str | None:
    """Return in which way a release contradicts itself; None if it does not."""
    if len(release.public_bounds) != release.n_features:
        return "there must be declared bounds for each feature."
    pairs = np.vstack((release.feature_bounds, release.target_bounds, release.public_bounds))
    if not (pairs[:, 0] < pairs[:, 1]).all():
        return "bounds must have low < high in every pair."
    if not release.named and release.names != tuple(f"x{j}" for j in range(release.n_features)):
        return "columns without names must be called x0, x1, and so on."
    made_of = FrameColumns.of_features(release.names, release.categories)
    if release.categories and made_of is None:
        return "the features are not those that the categories give."
    if release.classes is not None and len(set(release.classes)) != 2:
        return "the two classes must differ."
    if not {*(release.standing_out or ())} <= {*release.selected}:
        return "a feature stands out that has no coefficient."
    if release.path is not None:
        problem = _path_problem(release, release.path)
        if problem:
            return problem
    return None if release.inference is None else _inference_problem(release.inference)


def _path_problem(release: Release, path: Path) -> str | None:
    lengths = {len(path.features), len(path.signs), len(path.steps), release.n_iter}
    if len(lengths) != 1:
        return "the path's features, signs and steps must be as many as n_iter."
    constants = int(release.solver == "frank-wolfe" and release.fit_intercept)
    if path.features.max() >= release.n_features + constants:
        return "the path takes a step along a feature that the model does not have."
    if path.n_candidates is not None and path.n_candidates > release.n_features:
        return "the path offers more features than the model has."
    return None


def _inference_problem(inference: Inference) -> str | None:
    if inference.available != bool(inference.intervals):
        return "intervals are there exactly if inference is available."
    features = [one.feature for one in inference.intervals]
    if len(set(features)) != len(features):
        return "a feature has two intervals."
    if not all(one.low <= one.coefficient <= one.high for one in inference.intervals):
        return "an interval does not hold its own coefficient."
    return None
