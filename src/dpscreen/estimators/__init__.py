"""The scikit-learn face: the only place where privacy meets regression."""

from dpscreen.estimators._lasso import FrankWolfeLasso
from dpscreen.estimators._private import ADPScreen, DPFrankWolfe, RNMScreen

__all__ = ["ADPScreen", "DPFrankWolfe", "FrankWolfeLasso", "RNMScreen"]
