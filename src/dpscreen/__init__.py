"""Regression under differential privacy.

Estimators follow scikit-learn's interface. Names are imported on first use, so that
``import dpscreen`` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ADPScreen": "dpscreen.models",
    "BoundsWarning": "dpscreen.models",
    "DPFrankWolfe": "dpscreen.models",
    "FallbackWarning": "dpscreen.models",
    "FrankWolfeLasso": "dpscreen.models",
    "FreeScreen": "dpscreen.models",
    "LearntLevelsWarning": "dpscreen.models",
    "LoadedModel": "dpscreen.models",
    "ModelFileProblem": "dpscreen.models",
    "PrivateLasso": "dpscreen.models",
    "PrivateLogisticLasso": "dpscreen.models",
    "PrivateLogit": "dpscreen.models",
    "PrivateOLS": "dpscreen.models",
    "PrivatePoisson": "dpscreen.models",
    "PrivatePoissonLasso": "dpscreen.models",
    "RNMScreen": "dpscreen.models",
    "TableRefused": "dpscreen.models",
    "load": "dpscreen.models",
    "BudgetRefused": "dpscreen.privacy.ledger",
    "PrivacyLedger": "dpscreen.privacy.ledger",
    "PublishedCalibrationWarning": "dpscreen.privacy.statement",
    "SeededNoiseWarning": "dpscreen.privacy.statement",
    "WeakDeltaWarning": "dpscreen.privacy.statement",
    "scan": "dpscreen.tables.scan",
    "plan": "dpscreen.planning.plan",
    "plan_for": "dpscreen.planning.plan",
    "write_model_page": "dpscreen.planning.model_page",
}
__all__ = [
    "ADPScreen",
    "BoundsWarning",
    "BudgetRefused",
    "DPFrankWolfe",
    "FallbackWarning",
    "FrankWolfeLasso",
    "FreeScreen",
    "LearntLevelsWarning",
    "LoadedModel",
    "ModelFileProblem",
    "PrivacyLedger",
    "PrivateLasso",
    "PrivateLogisticLasso",
    "PrivateLogit",
    "PrivateOLS",
    "PrivatePoisson",
    "PrivatePoissonLasso",
    "PublishedCalibrationWarning",
    "RNMScreen",
    "SeededNoiseWarning",
    "TableRefused",
    "WeakDeltaWarning",
    "__version__",
    "load",
    "plan",
    "plan_for",
    "scan",
    "write_model_page",
]

if TYPE_CHECKING:
    from dpscreen.models import (
        ADPScreen,
        BoundsWarning,
        DPFrankWolfe,
        FallbackWarning,
        FrankWolfeLasso,
        FreeScreen,
        LearntLevelsWarning,
        LoadedModel,
        ModelFileProblem,
        PrivateLasso,
        PrivateLogisticLasso,
        PrivateLogit,
        PrivateOLS,
        PrivatePoisson,
        PrivatePoissonLasso,
        RNMScreen,
        TableRefused,
        load,
    )
    from dpscreen.planning.model_page import write_model_page
    from dpscreen.planning.plan import plan, plan_for
    from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger
    from dpscreen.privacy.statement import (
        PublishedCalibrationWarning,
        SeededNoiseWarning,
        WeakDeltaWarning,
    )
    from dpscreen.tables.scan import scan


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpscreen' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
