"""Support sets: few points on which kernel ridge regression does as well as on many records."""
