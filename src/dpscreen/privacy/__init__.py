"""What a guarantee is: budgets, costs, mechanisms, sensitivities, noise and statements.

Knows nothing of regression.
"""

from dpscreen.privacy.accountant import Accountant, BudgetExceeded, Use
from dpscreen.privacy.budget import ZCDP, Budget, Unit
from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger, WrongUnit
from dpscreen.privacy.ledger.file import LedgerProblem
from dpscreen.privacy.mechanisms import (
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    NoisyMax,
    SignedNoisyMax,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.noise import Noise, SecureNoise, SeededNoise, named_seed
from dpscreen.privacy.statement import (
    MechanismRecord,
    PrivacyStatement,
    PublishedCalibrationWarning,
    SeededNoiseWarning,
    WeakDeltaWarning,
)

__all__ = [
    "ZCDP",
    "Accountant",
    "Budget",
    "BudgetExceeded",
    "BudgetRefused",
    "DiscreteGaussian",
    "GaussianVector",
    "LaplaceNoisyMax",
    "LedgerProblem",
    "MechanismRecord",
    "Noise",
    "NoisyMax",
    "PrivacyLedger",
    "PrivacyStatement",
    "PublishedCalibrationWarning",
    "SecureNoise",
    "SeededNoise",
    "SeededNoiseWarning",
    "SignedNoisyMax",
    "ThresholdedNoisyMin",
    "Unit",
    "Use",
    "WeakDeltaWarning",
    "WrongUnit",
    "named_seed",
]
