"""Measurements: ratios within one run, never absolute seconds. Each file says what it shows."""
