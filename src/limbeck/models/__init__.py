"""Learners that see no private record."""
