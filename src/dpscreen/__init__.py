"""Sparse linear regression under differential privacy.

Estimators follow scikit-learn's interface. Names are imported on first use, so that
``import dpscreen`` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ADPScreen": "dpscreen.estimators",
    "DPFrankWolfe": "dpscreen.estimators",
    "FrankWolfeLasso": "dpscreen.estimators",
    "LoadedModel": "dpscreen.estimators",
    "ModelFileProblem": "dpscreen.estimators",
    "PrivateLasso": "dpscreen.estimators",
    "RNMScreen": "dpscreen.estimators",
    "load": "dpscreen.estimators",
    "BudgetRefused": "dpscreen.privacy.ledger",
    "PrivacyLedger": "dpscreen.privacy.ledger",
    "PublishedCalibrationWarning": "dpscreen.privacy.notices",
    "SeededNoiseWarning": "dpscreen.privacy.notices",
    "WeakDeltaWarning": "dpscreen.privacy.notices",
    "scan": "dpscreen.data.scan",
    "plan": "dpscreen.report.plan",
    "plan_for": "dpscreen.report.plan",
    "write_model_page": "dpscreen.report.model_page",
}
__all__ = [
    "ADPScreen",
    "BudgetRefused",
    "DPFrankWolfe",
    "FrankWolfeLasso",
    "LoadedModel",
    "ModelFileProblem",
    "PrivacyLedger",
    "PrivateLasso",
    "PublishedCalibrationWarning",
    "RNMScreen",
    "SeededNoiseWarning",
    "WeakDeltaWarning",
    "__version__",
    "load",
    "plan",
    "plan_for",
    "scan",
    "write_model_page",
]

if TYPE_CHECKING:
    from dpscreen.data.scan import scan
    from dpscreen.estimators import (
        ADPScreen,
        DPFrankWolfe,
        FrankWolfeLasso,
        LoadedModel,
        ModelFileProblem,
        PrivateLasso,
        RNMScreen,
        load,
    )
    from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger
    from dpscreen.privacy.notices import (
        PublishedCalibrationWarning,
        SeededNoiseWarning,
        WeakDeltaWarning,
    )
    from dpscreen.report.model_page import write_model_page
    from dpscreen.report.plan import plan, plan_for


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpscreen' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
