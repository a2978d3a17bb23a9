"""Public settings that most tests of the estimators share."""

PUBLIC = {
    "radius": 3.0,
    "n_iter": 5,
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-10, 10),
    "target_bounds": (-100, 100),
}
