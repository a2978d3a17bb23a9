"""Side-by-side timings. Machines are shared and noisy: only ratios from one run mean anything."""
