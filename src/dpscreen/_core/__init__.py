"""What every room needs: array types, files, words, and compiled loops. Knows no other room."""
