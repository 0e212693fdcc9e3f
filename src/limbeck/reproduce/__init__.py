"""The tables of the papers, cell by cell: their numbers beside ours.

`papers/` holds the tables as they were printed, and the settings of their appendices.
"""
