"""What a guarantee is made of: one file for each pillar of a mechanism.

`budget` what is promised, `clipping` what one record can do, `sampling` which records take part,
`noise` what hides them, `ledger` what was drawn, `accounting` what it adds up to.
"""
