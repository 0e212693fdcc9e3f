"""Learners that see no private record: predictors, generators, discriminators and networks."""
