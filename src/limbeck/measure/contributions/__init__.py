"""What a record adds to a sum: pure functions with a bound, one statistic a file.

Each states its bound in one sentence, **Guarantee**, and all of them pass the same test on
neighbouring data. `exact` ones are integers on a grid. The others exist in closed form only; they
are summed in float64, with a margin for rounding, and then rounded to the grid.
"""
