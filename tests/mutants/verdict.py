"""A plugin that writes down which test failed first, and whether it was an attack that succeeded.

An assertion, or a release that the accountant refuses, is one. Anything else is an accident: a
mutant that merely crashes is not known to be found.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from dpscreen.models import base
from dpscreen.privacy import BudgetExceeded

# A fit falls back where the accountant refuses; here a refusal must be told from a mere crash.
base.PASSED_ON = (*base.PASSED_ON, BudgetExceeded)

settings.register_profile(  # as in make test; a failure need not be made small
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
ATTACKS = (AssertionError, pytest.fail.Exception, BudgetExceeded)


def is_attack(error: BaseException) -> bool:
    """Whether a test failed because what it claims is not so."""
    if isinstance(error, BaseExceptionGroup):  # hypothesis, of several examples
        return all(map(is_attack, error.exceptions))
    return isinstance(error, ATTACKS)


def pytest_exception_interact(node, call):
    """Write the first failure to the file that the environment names."""
    place = Path(os.environ["MUTANT_VERDICT"])
    if not place.exists():
        error = call.excinfo.value
        found = {
            "test": node.nodeid,
            "error": f"{type(error).__name__}: {error}"[:300],
            "attack": is_attack(error),
        }
        place.write_text(json.dumps(found))
