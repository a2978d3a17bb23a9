"""The scikit-learn face: the only place where privacy meets regression."""

from dpscreen.estimators import peers
from dpscreen.estimators._lasso import FrankWolfeLasso
from dpscreen.estimators._loaded import LoadedModel, load
from dpscreen.estimators._model_file import ModelFileProblem
from dpscreen.estimators._private import ADPScreen, DPFrankWolfe, RNMScreen
from dpscreen.estimators._private_lasso import PrivateLasso

__all__ = [
    "ADPScreen",
    "DPFrankWolfe",
    "FrankWolfeLasso",
    "LoadedModel",
    "ModelFileProblem",
    "PrivateLasso",
    "RNMScreen",
    "load",
    "peers",
]
