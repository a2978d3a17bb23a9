"""The scikit-learn face: the only place where privacy meets regression."""

from dpscreen.models import peers
from dpscreen.models.base import BoundsWarning
from dpscreen.models.categories import LearntLevelsWarning
from dpscreen.models.delivery import FallbackWarning
from dpscreen.models.file import ModelFileProblem
from dpscreen.models.frank_wolfe import ADPScreen, DPFrankWolfe, FrankWolfeLasso, RNMScreen
from dpscreen.models.loaded import LoadedModel, load
from dpscreen.models.logistic import PrivateLogisticLasso, PrivateLogit
from dpscreen.models.poisson import PrivatePoisson, PrivatePoissonLasso
from dpscreen.models.private_lasso import FreeScreen, PrivateLasso
from dpscreen.models.private_ols import PrivateOLS
from dpscreen.models.refusal import TableRefused

__all__ = [
    "ADPScreen",
    "BoundsWarning",
    "DPFrankWolfe",
    "FallbackWarning",
    "FrankWolfeLasso",
    "FreeScreen",
    "LearntLevelsWarning",
    "LoadedModel",
    "ModelFileProblem",
    "PrivateLasso",
    "PrivateLogisticLasso",
    "PrivateLogit",
    "PrivateOLS",
    "PrivatePoisson",
    "PrivatePoissonLasso",
    "RNMScreen",
    "TableRefused",
    "load",
    "peers",
]
