"""Where private rows live; all that may be asked of them is whole-number sums."""
