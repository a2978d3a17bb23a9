"""The paper's tables, figures and claims: metrics, published values, trials, results."""
