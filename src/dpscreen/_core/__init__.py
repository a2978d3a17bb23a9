"""What every package needs: arrays and compiled loops, files, words, pictures."""
