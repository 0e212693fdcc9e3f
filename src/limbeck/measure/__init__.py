"""The private side of the wall: the only package that looks at private rows.

What leaves it is numbers that carry noise, each draw charged to a ledger.
"""
