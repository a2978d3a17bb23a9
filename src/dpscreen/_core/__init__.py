"""What every room needs: arrays and compiled loops, files, words, pictures."""
