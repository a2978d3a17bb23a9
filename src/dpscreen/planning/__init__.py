"""Before the budget is spent: methods on offer, and what each would find."""
