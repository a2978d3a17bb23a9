"""The linear algebra: designs, the Frank-Wolfe loop and the screening rules.

Knows nothing of privacy.
"""

from dpscreen.regression.design import DenseDesign, Design, GramDesign, Point
from dpscreen.regression.frank_wolfe import (
    Vertex,
    frank_wolfe,
    random_start,
    steepest_vertex,
    vertex_at,
    vertex_scores,
    wolfe_gap,
    zero_start,
)
from dpscreen.regression.lattice import (
    ExactDesign,
    ExactPoint,
    LatticeDesign,
    LatticePoint,
    RelaxedRule,
    exact_relaxed_scores,
)
from dpscreen.regression.screening import (
    Elimination,
    published_scores,
    safe_scores,
)

__all__ = [
    "DenseDesign",
    "Design",
    "Elimination",
    "ExactDesign",
    "ExactPoint",
    "GramDesign",
    "LatticeDesign",
    "LatticePoint",
    "Point",
    "RelaxedRule",
    "Vertex",
    "exact_relaxed_scores",
    "frank_wolfe",
    "published_scores",
    "random_start",
    "safe_scores",
    "steepest_vertex",
    "vertex_at",
    "vertex_scores",
    "wolfe_gap",
    "zero_start",
]
