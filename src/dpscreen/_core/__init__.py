"""What every room needs: array types, files, words, pictures, compiled loops."""
