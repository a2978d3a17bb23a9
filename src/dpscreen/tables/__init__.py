"""Files and frames with declared columns: from cells to numbers within public bounds."""
