"""What a guarantee is: budgets, costs, mechanisms, sensitivities, noise and statements.

Knows nothing of regression.
"""

from dpscreen.privacy.accountant import Accountant, BudgetExceeded, Use
from dpscreen.privacy.budget import Budget
from dpscreen.privacy.mechanisms import (
    GaussianVector,
    GumbelNoisyMax,
    LaplaceNoisyMax,
    Mechanism,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.noise import Noise, SecureNoise, SeededNoise, named_seed
from dpscreen.privacy.notices import (
    PublishedCalibrationWarning,
    SeededNoiseWarning,
    WeakDeltaWarning,
)
from dpscreen.privacy.statement import MechanismRecord, PrivacyStatement
from dpscreen.privacy.zcdp import ZCDP

__all__ = [
    "ZCDP",
    "Accountant",
    "Budget",
    "BudgetExceeded",
    "GaussianVector",
    "GumbelNoisyMax",
    "LaplaceNoisyMax",
    "Mechanism",
    "MechanismRecord",
    "Noise",
    "PrivacyStatement",
    "PublishedCalibrationWarning",
    "SecureNoise",
    "SeededNoise",
    "SeededNoiseWarning",
    "ThresholdedNoisyMin",
    "Use",
    "WeakDeltaWarning",
    "named_seed",
]
