"""Pure mathematics on records: kernels and what they see. Knows neither data nor privacy."""
