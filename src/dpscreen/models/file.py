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
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import resources
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.files import NotStrictJson, strict_json, write_bytes
from dpscreen._core.messages import message
from dpscreen._core.words import plain
from dpscreen.families import family_of_fields
from dpscreen.families.quality import NOISE, Measured
from dpscreen.models.categories import FrameColumns
from dpscreen.models.delivery import BoundsNote
from dpscreen.models.intervals import FeatureInterval, Inference
from dpscreen.models.regression_table import (
    RegressionTable,
    constant_beside,
    table_fields,
    table_of_fields,
)
from dpscreen.models.release import Release, checked_about
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.base import Path

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
        raise ModelFileProblem(message("model-file.exists", path=str(target))) from None
    except OSError as error:
        why = {"path": str(target), "reason": error.strerror or "it failed"}
        raise ModelFileProblem(message("model-file.unwritable", **why)) from None


def encoded(release: Release) -> bytes:
    """Return the content of a model file. Floats are written so that they read back exactly."""
    try:
        return f"{_laid_out(to_dict(release))}\n".encode()
    except (TypeError, ValueError, RecursionError):
        raise ModelFileProblem(message("model-file.not-json")) from None


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
    columns = release.names, release.coefficients.tolist(), release.feature_bounds.tolist()
    keys = ("name", "coefficient", "bounds")
    features = [dict(zip(keys, one, strict=True)) for one in zip(*columns, strict=True)]
    values = vars(release) | {"features": features, "quality": None}
    values[release.family.quality_type.file_field] = release.quality
    some_have = [name for name in ("categories", "about") if values[name]]
    names = ("table", "above_noise", "declared_bounds", "fallback", "missing_as")
    some_have += [name for name in names if values[name] is not None]
    some_have += release.family.file_fields
    return {
        "format": FORMAT,
        "version": VERSION,
        "library": {"name": "dpscreen", "version": __version__},
        "model": {name: _plain(values[name]) for name in (*FIELDS, *some_have)},
        "statement": release.statement.to_dict(),
        "schema": None if release.schema is None else dict(release.schema),
    }


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.tolist()
        case Path() | Inference() | BoundsNote():
            return {name: _plain(one) for name, one in vars(value).items()}
        case Measured():  # what is not known is null
            return {name: _plain(None if one != one else one) for name, one in vars(value).items()}
        case RegressionTable():
            return table_fields(value)
        case FeatureInterval():  # the features have the names
            return {name: one for name, one in vars(value).items() if name != "name"}
        case tuple():
            return list(map(_plain, value))
        case dict():
            return {name: _plain(one) for name, one in value.items()}
    return value


# --- reading --------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> Release:
    """Return the release that a file holds, or raise `ModelFileProblem`."""
    try:
        return decoded(_bytes_of(FilePath(path)))
    except ModelFileProblem as problem:
        where = plain(os.fspath(path))
        raise ModelFileProblem(
            message("model-file.at", path=where, problem=problem.args[0])
        ) from None


def _bytes_of(path: FilePath) -> bytes:
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        if regular:
            with path.open("rb") as file:
                return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "cannot be opened"
        raise ModelFileProblem(message("model-file.unreadable", reason=reason)) from None
    raise ModelFileProblem(message("model-file.not-a-file"))


def decoded(content: bytes) -> Release:
    """Return the release in the content of a file, or raise `ModelFileProblem`."""
    if len(content) > MOST_BYTES:
        raise ModelFileProblem(message("model-file.large", most=MOST_BYTES // 2**20))
    try:
        found = strict_json(content)
    except NotStrictJson as problem:
        raise ModelFileProblem(message("model-file.unreadable", reason=str(problem))) from None
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        raise ModelFileProblem(message("model-file.no-model"))
    version = found.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileProblem(message("model-file.no-version"))
    if version > VERSION:
        versions = {"version": version, "known": VERSION, "library": __version__}
        raise ModelFileProblem(message("model-file.newer", **versions))
    error = next(_validator().iter_errors(_shortened(found)), None)
    if error is not None:
        raise ModelFileProblem(message("model-file.form", fault=_described(error)))
    try:
        release = _release(found)
        for fault in contradictions(release):
            raise ValueError(fault)
    except ValueError as problem:
        raise ModelFileProblem(message("model-file.contradiction", fault=problem.args[0])) from None
    return release


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
    known = type(one) is dict and one.keys() == {"name", "coefficient", "bounds"}
    if not known or type(one["name"]) is not str:
        return False
    return _is_pair(one["bounds"]) and _within(one["coefficient"], 1e200)


def _is_pair(bounds: Any) -> bool:
    """Whether bounds satisfy the JSON Schema."""
    pair = type(bounds) is list and len(bounds) == 2
    return pair and all(_within(end, 1e100) for end in bounds)


def _within(value: Any, limit: float) -> bool:
    return type(value) in (float, int) and -limit <= value <= limit


def _described(error: Any) -> str:
    """Return what a validation error means, without the value that it is about."""
    place = plain("/".join(map(str, error.absolute_path))) or "the file"
    rule = error.validator_value
    match error.validator:
        case "required":
            absent = [name for name in rule if name not in error.instance]
            return message("model-file.lacks", place=place, names=", ".join(absent))
        case "additionalProperties":
            known = error.schema.get("properties", {})
            extra = [plain(name) for name in error.instance if name not in known]
            return message("model-file.unknown", place=place, names=", ".join(extra[:3]))
        case "type":
            kinds = rule if isinstance(rule, list) else [rule]
            return message("model-file.type", place=place, kinds=" or ".join(kinds))
    told = {"rule": error.validator, "value": plain(json.dumps(rule))}
    return message("model-file.rule", place=place, **told)


def _release(found: Mapping[str, Any]) -> Release:
    model, family = found["model"], family_of_fields(found["model"])
    kind = family.quality_type
    features, names = model["features"], tuple(one["name"] for one in model["features"])

    def optional(name: str, read: Callable[[Any], Any]) -> Any:
        return None if model.get(name) is None else read(model[name])

    as_they_are = ("estimator", "named", "clips_features", "fit_intercept", "solver")
    constant = (constant_beside(names),) * bool(model["fit_intercept"])
    return Release(
        **{name: model[name] for name in as_they_are},
        names=names,
        coefficients=_numbers([one["coefficient"] for one in features]),
        intercept=float(model["intercept"]),
        feature_bounds=_numbers([one["bounds"] for one in features]),
        target_bounds=_numbers(model["target_bounds"]),
        n_iter=int(model["n_iter"]),
        statement=PrivacyStatement.from_dict(found["statement"]),
        n_rows=optional("n_rows", int),
        scale=optional("scale", float),
        path=optional("path", _read_path),
        max_features=optional("max_features", int),
        inference=optional("inference", partial(_read_inference, names=names)),
        categories={name: tuple(one) for name, one in model.get("categories", {}).items()},
        quality=optional(kind.file_field, partial(_read_quality, kind=kind)),
        bounds_notes=optional(
            "bounds_notes", lambda notes: tuple(BoundsNote(**one) for one in notes)
        ),
        table=optional("table", lambda one: table_of_fields(one, names + constant, len(names))),
        schema=found["schema"],
        classes=optional("classes", tuple),
        above_noise=optional("above_noise", tuple),
        about=checked_about(model.get("about", {})),
        declared_bounds=optional("declared_bounds", _numbers),
        fallback=model.get("fallback"),
        missing_as=optional("missing_as", _numbers),
        family=family,
    )


def _numbers(values: Any) -> Array:
    return np.array(values, dtype=np.float64)


def _read_path(found: Mapping[str, Any]) -> Path:
    n_candidates = found.get("n_candidates")
    return Path(
        np.array(found["features"], dtype=np.int64),
        np.array(found["signs"], dtype=np.int64),
        _numbers(found["steps"]),
        None if n_candidates is None else int(n_candidates),
    )


def _read_quality(found: Mapping[str, Any], kind: Any) -> Any:
    surplus = kind.columns
    tuples = {name: tuple(map(float, found[name])) for name in surplus}
    ordered = [one for name, one in tuples.items() if not surplus[name]]
    lengths = {len(one) - surplus[name] for name, one in tuples.items()}
    if len(lengths) > 1 or any(list(one) != sorted(one) for one in ordered):
        raise ValueError(message("model-file.edges"))
    there = (name for name in kind.__dataclass_fields__ if name in found)
    known: dict[str, Any] = {
        name: math.nan if found[name] is None else found[name] for name in there
    } | tuples
    for name, stem, *_ in kind.measures:
        names = name, f"{stem}_low", f"{stem}_high"
        ends, reason = [found[one] for one in names], None
        if None in ends:  # a measure without an end is not known
            ends, reason = [math.nan] * 3, found.get(f"{stem}_reason") or NOISE
        elif not ends[1] <= ends[0] <= ends[2]:
            raise ValueError(message("model-file.measure", name=name))
        known |= dict(zip(names, ends, strict=True)) | {f"{stem}_reason": reason}
    return kind(**known)


def _read_inference(found: Mapping[str, Any], names: tuple[str, ...]) -> Inference:
    if any(one["feature"] >= len(names) for one in found["intervals"]):
        raise ValueError(message("model-file.interval-of-none"))
    keys = ("coefficient", "standard_error", "low", "high")
    intervals = tuple(
        FeatureInterval(feature, names[feature], *(float(one[key]) for key in keys))
        for one in found["intervals"]
        for feature in (int(one["feature"]),)
    )
    return Inference(found["available"], found["wording"], intervals)


def contradictions(release: Release) -> Iterator[str]:
    """Yield how a release contradicts itself, the first that matters first."""
    if len(release.public_bounds) != release.n_features:
        yield message("model-file.declared-bounds")
    if len(release.centres) != release.n_features:
        yield message("model-file.missing-as")
    pairs = np.vstack((release.feature_bounds, release.target_bounds, release.public_bounds))
    if not (pairs[:, 0] < pairs[:, 1]).all():
        yield message("model-file.bounds")
    if not release.named and release.names != tuple(f"x{j}" for j in range(release.n_features)):
        yield message("model-file.names")
    made_of = FrameColumns.of_features(release.names, release.categories)
    if release.categories and made_of is None:
        yield message("model-file.categories")
    if not release.family.fits(release.classes):
        yield message("model-file.classes")
    if not {*(release.above_noise or ())} <= {*release.selected}:
        yield message("model-file.above-noise")
    if release.path is not None:
        yield from _of_path(release, release.path)
    if release.inference is not None:
        yield from _of_inference(release.inference)


def _of_path(release: Release, path: Path) -> Iterator[str]:
    if {len(path.features), len(path.signs), len(path.steps)} != {release.n_iter}:
        yield message("model-file.path-length")
    constants = int(release.solver == "frank-wolfe" and release.fit_intercept)
    if path.features.max() >= release.n_features + constants:
        yield message("model-file.path-feature")
    if path.n_candidates is not None and path.n_candidates > release.n_features:
        yield message("model-file.path-candidates")


def _of_inference(inference: Inference) -> Iterator[str]:
    features = [one.feature for one in inference.intervals]
    if inference.available != bool(features):
        yield message("model-file.intervals")
    if len(set(features)) != len(features):
        yield message("model-file.interval-twice")
    if not all(one.low <= one.coefficient <= one.high for one in inference.intervals):
        yield message("model-file.interval-ends")
