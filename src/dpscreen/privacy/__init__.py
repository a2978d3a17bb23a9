"""What a guarantee is: budgets, costs, mechanisms, sensitivities, noise and statements.

Knows nothing of regression.
"""

from dpscreen.privacy.budget import ZCDP, Budget, Unit
from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger, Reservable, WrongUnit
from dpscreen.privacy.ledger.file import LedgerBusy, LedgerProblem
from dpscreen.privacy.ledger.records import Reservation
from dpscreen.privacy.mechanisms import (
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    Mechanism,
    NoisyMax,
    SignedNoisyMax,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.noise import Noise, SecureNoise, SeededNoise, named_seed
from dpscreen.privacy.releases import Accountant, BudgetExceeded, Use
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
    "LedgerBusy",
    "LedgerProblem",
    "Mechanism",
    "MechanismRecord",
    "Noise",
    "NoisyMax",
    "PrivacyLedger",
    "PrivacyStatement",
    "PublishedCalibrationWarning",
    "Reservable",
    "Reservation",
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
