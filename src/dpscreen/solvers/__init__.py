"""Private steps: how a model is found when rows are behind an accountant."""
