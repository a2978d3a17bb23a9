"""Effects on a target that is declared as a logarithm are per cent, wherever they are shown."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import fitted

from dpscreen._core.words import cell, number
from dpscreen.families import Quality
from dpscreen.models.cards import model_card_of
from dpscreen.models.comparison import compared
from dpscreen.models.explain import explanation_of
from dpscreen.models.page import render_model_page
from dpscreen.models.page.effects import effects_of, plot_release
from dpscreen.models.summary import summary_of

QUALITY = Quality(0.632, 0.146, 0.814, 0.26, 0.24, 0.45, True, (1.0,), (1.0,))


def schema(transform):
    return {"dpscreen": {"target": "cost", "transform": {"cost": transform}}}


def logged(kind, transform="log"):
    """Return a release of a log target, with coefficients of a log scale."""
    release = fitted(kind).released()
    smaller = release.coefficients / np.abs(release.effects).max()
    return replace(release, coefficients=smaller, schema=schema(transform))


def words(text):
    return " ".join(str(text).replace("\\", "").split())


@pytest.mark.parametrize("kind", ["lasso", "ols"])
@pytest.mark.parametrize(("transform", "what"), [("log", "cost"), ("log1p", "1 + cost")])
def test_effects_are_per_cent(kind, transform, what):
    release = logged(kind, transform)
    table = release.table
    if table is not None:
        release = replace(
            release, table=replace(table, coefficients=np.append(release.coefficients, 1.0))
        )
    first = release.selected[0]
    percent = 100 * math.expm1(release.effects[first])
    shown = f"{number(percent, digits=4)} %"
    summary = summary_of(release)
    assert f"Effect: of the step on {what}, in per cent." in words(summary)
    assert "effect\u00a0%" in str(summary)
    assert cell(percent, digits=4) in words(summary).split()
    assert "target's units" not in words(summary)
    assert summary.frame["effect_percent"].iloc[first if table else 0] == pytest.approx(percent)
    verb = "raises" if percent > 0 else "lowers"
    assert f"{verb} {what} by {number(abs(percent), digits=3)} %" in words(explanation_of(release))
    assert shown in words(model_card_of(release))
    assert "target's units" not in words(model_card_of(release))


def test_pictures_and_pages_are_in_per_cent():
    model, release = fitted("lasso"), logged("lasso")
    drawn = effects_of(release)
    assert drawn.label.startswith("effect of the step on cost, in per cent")
    axes = plot_release(release)
    diamonds = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "D"]
    assert diamonds[0] == pytest.approx(100 * math.expm1(summary_of(release).rows[0].effect))
    page = words(re.sub("<[^>]*>", " ", render_model_page(model, schema=schema("log"))))
    assert "Effect: of the step on cost, in per cent." in page
    assert "target's units" not in page
    told = dict(compared([release, release], ["a", "b"]).facts)
    assert told["effects are"] == ("changes of log(cost)",) * 2


@pytest.mark.parametrize("kind", ["lasso", "ols"])
def test_quality_says_that_it_is_of_the_transformed_target(kind):
    """A typical error of 0.26 of log(price) was printed as if it were one of the price."""
    release = replace(logged(kind), quality=QUALITY)
    assert "On log(cost): R² 0.632" in words(summary_of(release))
    assert "on the scale of log(cost): R² 0.632" in words(explanation_of(release))
    told = words(summary_of(replace(release, schema=schema("none"))))
    assert "On log(cost)" not in told
