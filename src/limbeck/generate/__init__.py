"""Generators: networks that make as many records as one likes, from noisy measurements."""
